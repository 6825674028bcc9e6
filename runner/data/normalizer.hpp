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

}  // namespace headroom
