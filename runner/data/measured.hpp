// What was measured and what a model sees of it: a source may standardise the channels of a field, and the host does
// so after it (normalizer.hpp).
#pragma once

#include <span>
#include <vector>

#include "data/field_statistics.hpp"
#include "plugins/source.hpp"

namespace headroom {

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
