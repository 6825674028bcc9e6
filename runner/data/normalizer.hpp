// Standardises fields flagged NORMALIZE: (x - mean) / std per channel, from a sample or from all of the training split.
// kept_statistics.hpp keeps what was measured for the next start.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/split.hpp"
#include "plugins/source.hpp"

namespace headroom {

struct FieldStatistics {
  std::string field;
  std::vector<double> mean, std;  // one per channel; std of a constant channel is 1
  uint64_t samples = 0;           // that went in
};

// What there is to say of a measurement: samples that were left out and why, channels that are constant.
using MeasurementNotes = std::vector<std::string>;

class Normalizer {
 public:
  Normalizer() = default;  // leaves everything as it is
  // "sampled": `max_samples` evenly spaced samples (linspace over the split); "exact": all of them. float64 sums (Chan,
  // Golub, LeVeque). A sample that holds NaN or an infinite value does not count, nor, where `skip_bad_samples`, one
  // that cannot be read. Error(data) where none is left.
  static Normalizer measure(const Source& source, const Split& train, const std::string& mode, int64_t max_samples,
                            bool skip_bad_samples = false, MeasurementNotes* notes = nullptr);

  void apply(std::span<const Field> fields,
             std::span<const DLTensor> batch) const;                 // [any] float32 and float64, in place
  Normalizer without(const std::vector<std::string>& fields) const;  // leaves these as they are
  const std::vector<FieldStatistics>& statistics() const { return statistics_; }
  nlohmann::json to_json() const;
  static Normalizer from_json(const nlohmann::json& json);

 private:
  std::vector<FieldStatistics> statistics_;
};

}  // namespace headroom
