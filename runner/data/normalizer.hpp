// Standardises the fields that ask for it: (x - mean) / std per channel, by statistics of the training split.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/field_statistics.hpp"
#include "data/split.hpp"
#include "plugins/source.hpp"

namespace headroom {

// Sentences about a measurement: samples that were left out and why, channels that are constant.
using MeasurementNotes = std::vector<std::string>;

class Normalizer {
 public:
  Normalizer() = default;  // leaves everything as it is
  // Measures `train`. `mode` is data.normalize: "off", "sampled" (`max_samples` samples, evenly spaced) or "exact"
  // (all). Sums are float64 (Chan, Golub and LeVeque). Leaves out samples with NaN or infinity and, where
  // `skip_bad_samples`, those that cannot be read. Error(data) where none is left, Error(plugin) for a field of another
  // type than float32 and float64. [control]
  static Normalizer measure(const Source& source, const Split& train, const std::string& mode, int64_t max_samples,
                            bool skip_bad_samples = false, MeasurementNotes* notes = nullptr);

  // Standardises a batch in place; `batch` has the tensors of `fields`, and may lack memory for some. [any]
  void apply(std::span<const Field> fields, std::span<const DLTensor> batch) const;
  // The same normaliser without these fields.
  Normalizer without(const std::vector<std::string>& fields) const;
  const std::vector<FieldStatistics>& statistics() const { return statistics_; }
  // from_json(to_json()) is equal to the bit. Error(bad_input).
  nlohmann::json to_json() const;
  static Normalizer from_json(const nlohmann::json& json);

 private:
  std::vector<FieldStatistics> statistics_;
};

// Statistics measured once for the same data and kept in the user's cache folder for later runs (kept_statistics.cpp).
struct StatisticsRequest {
  const Source& source;
  const Split& train;
  std::string mode;  // data.normalize
  int64_t max_samples = 0;
  bool skip_bad_samples = false;
  std::string content_id;  // content_id(source)
  std::string reads_as;    // what else decides the values of a sample: the plugin's file and its options
};

struct FoundStatistics {
  Normalizer normalizer;
  bool kept = false;               // an earlier run measured them
  std::vector<std::string> lines;  // for the log; none where nothing is standardised
};

// Returns kept statistics where the files on disk are the same (device, inode, size, modification time) and so are
// content id, split and request; else measures. A file of statistics that is damaged is measured again; one that cannot
// be written is left out without an error. Error(data) as Normalizer::measure(). [control]
FoundStatistics find_statistics(const StatisticsRequest& request);

// Identifies a source's data wherever it lies: a hash of its fields and of its files' relative names, sizes, and first
// and last 64 KiB. Files behind the external links and virtual datasets that it opened are among them. Against
// accidents, not against attackers. Error(data) where a file cannot be read. [any]
std::string content_id(const Source& source);

}  // namespace headroom
