// Where libhdf5 says the chunks of a dataset are.
#pragma once

#include <optional>
#include <vector>

#include "arrays/hdf5.hpp"
#include "arrays/hdf5_plan.hpp"

namespace headroom {

// Row-major over `grid`, offsets as libhdf5 gives them. Nothing where it will not say, or only in quadratic time:
// `may_print` says that standard output may be redirected for a moment. Under Hdf5Lock.
std::optional<std::vector<StoredChunk>> list_chunks(hid_t dataset, const ArrayLayout& layout,
                                                    const std::vector<uint64_t>& grid, bool may_print);

}  // namespace headroom
