// The statistics that a field is standardised with, and how the values that a model sees relate to measured ones. A
// source may standardise the channels of a field, and the host may do so after it (normalizer.hpp).
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

// Reading back gives bit-equal statistics. Error(bad_input).
nlohmann::json statistics_to_json(std::span<const FieldStatistics> statistics);
std::vector<FieldStatistics> statistics_from_json(const nlohmann::json& json);

// For every place along `axis` of a sample (-1: one for the whole field): its name, its unit, and how the model's value
// relates to the measured one: measured = value * std + mean. `statistics`: the run's; {} where the host standardises
// nothing.
std::vector<Channel> measured_channels(const Field& field, std::span<const FieldStatistics> statistics, int axis);

// The shape in which one number for each channel, or a single number where there is no channel axis, broadcasts over a
// batch of the field: 1 along every other axis.
std::vector<int64_t> beside_batch(const Field& field);

// A source's fields as a model gets them. A field that the host standardises has no unit, since its values are no
// longer volts or newtons. Where the host `standardises` nothing, no field asks for it.
std::vector<Field> delivered_fields(std::vector<Field> fields, bool standardises);

}  // namespace headroom
