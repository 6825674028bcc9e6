// Reads boxes by a plan, without H5Dread: out of a contiguous dataset, or out of chunks. Large reads are cut into parts
// where threads share them (read_hooks.hpp).
#pragma once

#include <functional>
#include <span>

#include "arrays/box.hpp"
#include "arrays/chunk_cache.hpp"
#include "arrays/file_map.hpp"
#include "arrays/hdf5_plan.hpp"
#include "arrays/record_sink.hpp"

namespace headroom {

// Thrown where bytes cannot be read. It says which and why; the caller, who knows the names of file and dataset, makes
// a sentence of it.
struct BadPlace {
  Coordinates chunk_origin = {};
  bool in_chunk = false;
  // One of these is set:
  int code = 0;             // errno of the read that failed
  bool ends_early = false;  // the file is shorter than its plan says
  std::string damage = {};  // what is wrong with a chunk's stored bytes
};

// Has libhdf5 find a chunk: returns its stored bytes, and sets `filter_mask` to the filters that were skipped when it
// was written. Empty: the chunk was never written. The bytes are valid until the thread's next call. Throws BadPlace.
using FetchChunk = std::function<std::span<const std::byte>(const Coordinates& origin, uint32_t& filter_mask)>;

// The planned file, opened, and the cache of its decoded chunks.
struct FileBytes {
  int descriptor;
  const FileMap& map;
  ChunkCache& chunks;
};

// Puts the box [start, start + count) into `sink`. REQUIRES that the box lies inside the dataset, that it is not empty,
// and that the plan's lane is the function's. `fetch` is called for Lane::chunk_calls only. Throws BadPlace. [any]
void read_contiguous(const ArrayPlan& plan, const FileBytes& file, std::span<const uint64_t> start,
                     std::span<const uint64_t> count, RecordSink& sink);
void read_chunks(const ArrayPlan& plan, const FileBytes& file, std::span<const uint64_t> start,
                 std::span<const uint64_t> count, RecordSink& sink, const FetchChunk& fetch);

}  // namespace headroom
