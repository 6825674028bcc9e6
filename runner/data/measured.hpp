// What was measured and what a model sees of it: a source may standardise the channels of a field, and the host does
// so after it (normalizer.hpp).
#pragma once

#include <vector>

#include "data/normalizer.hpp"
#include "plugins/source.hpp"

namespace headroom {

// Of every place along `axis` of a sample (-1: of the whole field, one) its name, its unit, and how the value that a
// model sees came from what was measured: measured = value * std + mean.
std::vector<Channel> measured_channels(const Field& field, const Normalizer& normalizer, int axis);

// The fields of a source as they reach a model: what the host standardises has no unit, since its values are no volts
// or newtons; where it `standardises` nothing, no field asks for it either.
std::vector<Field> delivered_fields(std::vector<Field> fields, bool standardises);

}  // namespace headroom
