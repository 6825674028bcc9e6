// Names and units of a field's channels, from the settings or from attributes of the files.
#pragma once

#include <vector>

#include "field.hpp"

namespace hdf5_source {

// One for each place of the field's channel axis. Attributes are those of `sequence`, the first one. Throws
// HR_INVALID_ARGUMENT where there are not as many, HR_DATA_CORRUPT where no object has the attribute.
std::vector<sdk::Channel> channels_of(const sdk::Host& host, const Sequence& sequence, const FieldLayout& field);

// Throws HR_DATA_CORRUPT where the attributes of a later sequence name other channels or units than `expected`, those
// of the first. One that has no such attribute is taken to have the same.
void require_same_channels(const sdk::Host& host, const Sequence& first, const Sequence& other,
                           const FieldSettings& field, const std::vector<sdk::Channel>& expected);

}  // namespace hdf5_source
