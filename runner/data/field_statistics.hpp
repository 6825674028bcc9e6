// What a field is standardised by, and what a model sees of what was measured: a source may standardise the channels of
// a field, and the host does so after it (normalizer.hpp).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "plugins/source.hpp"

namespace headroom {

struct FieldStatistics {
  std::string field;
  std::vector<double> mean, std;  // one of each per channel; the std of a constant channel is 1
  uint64_t samples = 0;           // how many were measured
};

// Read back they are equal to the bit. Error(bad_input).
nlohmann::json statistics_to_json(std::span<const FieldStatistics> statistics);
std::vector<FieldStatistics> statistics_from_json(const nlohmann::json& json);

// Of every place along `axis` of a sample (-1: of the whole field, one) its name, its unit, and how the value that a
// model sees came from what was measured: measured = value * std + mean. `statistics`: of the run, {} where the host
// standardises nothing.
std::vector<Channel> measured_channels(const Field& field, std::span<const FieldStatistics> statistics, int axis);

// The shape in which numbers of the channels of a field, or one number where it has no channel axis, stand beside a
// batch of it: 1 along every other axis.
std::vector<int64_t> beside_batch(const Field& field);

// The fields of a source as they reach a model: what the host standardises has no unit, since its values are no volts
// or newtons; where it `standardises` nothing, no field asks for it either.
std::vector<Field> delivered_fields(std::vector<Field> fields, bool standardises);

}  // namespace headroom
