// How one dataset is read without libhdf5, decided once by libhdf5 itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arrays/filters.hpp"
#include "arrays/hdf5_file.hpp"
#include "arrays/hdf5_layout.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

// The ways to a dataset's bytes, fastest first.
enum class Lane : uint8_t {
  contiguous,   // one run of records in the file
  chunk_table,  // chunks whose places are known
  chunk_calls,  // too many chunks for a table: libhdf5 finds the stored bytes, we decode them
  library,      // H5Dread
};
std::string lane_name(Lane lane);

struct StoredChunk {
  uint64_t offset = 0;  // in the file
  uint32_t bytes = 0;   // 0: never written, reads as the fill value
  uint32_t filter_mask = 0;
};

struct ArrayPlan {
  uint64_t id = 0;  // of this plan in this process
  FileIdentity file;
  ArrayLayout layout;
  Lane lane = Lane::library;
  std::string why_library;           // "it is stored in the object header", where lane is library
  uint64_t offset = 0;               // contiguous
  std::vector<uint64_t> grid;        // chunks along each axis
  std::vector<StoredChunk> chunks;   // chunk_table: row-major over the grid
  std::vector<ChunkFilter> filters;  // in the order they were applied
  std::vector<std::byte> fill;       // one record, where chunks were never written
};

inline constexpr uint64_t most_planned_chunks = 20'000;

// Looks the dataset up, describes it, and compares what its lane would read with what H5Dread reads. Throws sdk::Error
// for what cannot be read at all. Under Hdf5Lock. `may_print`: standard output is ours to redirect, which finds chunks
// in linear time with libhdf5 1.10.
ArrayPlan plan_array(Hdf5File& file, const std::string& dataset, bool may_print);

}  // namespace headroom
