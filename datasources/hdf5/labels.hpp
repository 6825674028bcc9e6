// Strings: as numbers of classes, or as the bytes of their text. Read when a source opens, and kept.
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

// The strings of a field's dataset, cut at its text_bytes, with a warning. Throws as read_labels().
std::vector<std::string> read_texts(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                    const sdk::ArrayInfo& info);

}  // namespace hdf5_source
