// Mean and deviation of every channel of the fields that ask for it, from a sample or from all of a split.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

struct Measured {
  std::vector<FieldStatistics> statistics;  // of each field flagged NORMALIZE
  MeasurementNotes notes;
};

// As Normalizer::measure, for mode "sampled" or "exact".
Measured measure_fields(const Source& source, const Split& split, const std::string& mode, int64_t max_samples,
                        bool skip_bad_samples);

}  // namespace headroom
