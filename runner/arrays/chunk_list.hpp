// The table of a dataset's chunks, from libhdf5.
#pragma once

#include <optional>
#include <vector>

#include "arrays/hdf5.hpp"
#include "arrays/hdf5_plan.hpp"

namespace headroom {

// One entry for each cell of `grid`, row-major; offsets as libhdf5 gives them, which may leave out a user block.
// nullopt where libhdf5 does not tell, contradicts itself, or would need quadratic time: H5Dget_chunk_info() walks the
// index from its start for every chunk, so it is used for up to 1000 chunks. H5Ddebug() needs one walk but prints to
// standard output. `may_print` allows redirecting that for the moment: only in a process of which nobody else prints.
// REQUIRES Hdf5Lock.
std::optional<std::vector<StoredChunk>> list_chunks(hid_t dataset, const ArrayLayout& layout,
                                                    const std::vector<uint64_t>& grid, bool may_print);

}  // namespace headroom
