// Classes: what an integer's values mean, and strings as such values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "sequence.hpp"
#include "settings.hpp"

namespace hdf5_source {

// Throws where a class stands twice among a field's, or there are more than the host tells apart.
void require_classes(const FieldSettings& field, std::vector<std::string> classes);

// The strings of a field's dataset as numbers among `classes`. Throws HR_DATA_CORRUPT for what holds no strings, and
// for a string that is no class.
std::vector<int32_t> read_labels(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                 const sdk::ArrayInfo& info, const std::vector<std::string>& classes);

}  // namespace hdf5_source
