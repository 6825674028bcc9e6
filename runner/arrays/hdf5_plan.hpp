// The plan of a dataset: how it is read without libhdf5. libhdf5 makes it, once, in the child process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/filters.hpp"
#include "arrays/hdf5.hpp"
#include "arrays/hdf5_file.hpp"
#include "arrays/hdf5_layout.hpp"
#include "arrays/open_files.hpp"
#include "arrays/other_files.hpp"

namespace headroom {

// The ways to read a dataset, the fastest first.
enum class Lane : uint8_t {
  contiguous,   // one run of records in the file
  chunk_table,  // chunks whose places are known
  chunk_calls,  // too many chunks for a table: libhdf5 finds the stored bytes, we decode them
  library,      // H5Dread
};
// What `headroom data inspect` calls it: "direct", "direct chunks", "chunks through libhdf5", "libhdf5".
std::string lane_name(Lane lane);

struct StoredChunk {
  uint64_t offset = 0;  // in the file
  uint32_t bytes = 0;   // 0: never written, reads as the fill value
  uint32_t filter_mask = 0;
};

// Immutable once it is made.
struct ArrayPlan {
  uint64_t id = 0;  // unique in this process: the chunk cache's key
  FileIdentity file;
  std::vector<OtherFile> others;
  ArrayLayout layout;
  Lane lane = Lane::library;
  std::string why_library;           // "it is stored in the object header", where lane is library
  uint64_t offset = 0;               // contiguous
  std::vector<uint64_t> grid;        // chunks along each axis
  std::vector<StoredChunk> chunks;   // chunk_table: row-major over the grid
  std::vector<ChunkFilter> filters;  // in the order they were applied
  std::vector<std::byte> fill;       // one record, where chunks were never written
};

// A dataset of more chunks gets no table of them: each takes 16 bytes, and some time to find.
inline constexpr uint64_t most_planned_chunks = 20'000;

// Finds the dataset, describes it, chooses the fastest lane, and compares some records read by that lane with what
// H5Dread returns: where they differ the lane is `library`. Throws sdk::Error where the dataset cannot be read at all.
// `may_print`: as for list_chunks(). The other files come without identities. REQUIRES Hdf5Lock.
ArrayPlan plan_array(Hdf5File& file, const std::string& dataset, bool may_print);

// The table of a dataset's chunks, from libhdf5 (chunk_list.cpp): one entry for each cell of `grid`, row-major; offsets
// as libhdf5 gives them, which may leave out a user block. nullopt where libhdf5 does not tell, contradicts itself, or
// would need quadratic time: H5Dget_chunk_info() walks the index from its start for every chunk, so it is used for up
// to 1000 chunks. H5Ddebug() needs one walk but prints to standard output. `may_print` allows redirecting that for the
// moment: only in a process of which nobody else prints. REQUIRES Hdf5Lock.
std::optional<std::vector<StoredChunk>> list_chunks(hid_t dataset, const ArrayLayout& layout,
                                                    const std::vector<uint64_t>& grid, bool may_print);

// The plans of this process (array_plans.cpp). A dataset is planned once; all arrays that read it share the plan. A
// plan that nobody holds is kept for a while (4096 of them, 16 MiB), so that opening the dataset again costs no
// question to libhdf5.
struct PlannedArray {
  std::shared_ptr<const ArrayPlan> plan;
  std::shared_ptr<PlannedFile> file;  // the one that was planned; shared by all its datasets
};

// The plan of `dataset`, an absolute name ("/a/b"), in the file at `path`. The first call for a dataset asks the child
// process (hdf5_child.hpp) and takes milliseconds; later ones take a stat(). Throws sdk::Error where the dataset cannot
// be read, and where the file has changed while another array still reads its earlier state. [any]
PlannedArray planned_array(const std::string& path, const std::string& dataset);

}  // namespace headroom
