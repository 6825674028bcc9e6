// Lists of numbers, each of its own length (HDF5's vlen): what opening says of them.
#pragma once

#include <cstdint>

#include "headroom/datasource.hpp"
#include "sequence.hpp"
#include "settings.hpp"

namespace hdf5_source {

// Looks at the first lists of a field's dataset, and returns the type of their values; nullopt where it holds no lists
// of numbers. Throws HR_DATA_CORRUPT where the field does not say how long they arrive, where one of those lists is
// longer, and for more than one axis. Warns of lists that are cut.
std::optional<DLDataType> examine_lists(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field);

// Throws HR_DATA_CORRUPT: the list of `row` has more values than fit.
[[noreturn]] void refuse_list(const Sequence& sequence, const FieldSettings& field, uint64_t row, uint64_t length);

}  // namespace hdf5_source
