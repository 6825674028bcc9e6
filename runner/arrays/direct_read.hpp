// The lanes without H5Dread: boxes out of a contiguous dataset, or out of chunks.
#pragma once

#include <functional>
#include <span>

#include "arrays/box.hpp"
#include "arrays/chunk_cache.hpp"
#include "arrays/file_map.hpp"
#include "arrays/hdf5_plan.hpp"
#include "arrays/record_sink.hpp"

namespace headroom {

// Bytes cannot be had: which, so that the sentence can name them.
struct BadPlace {
  Coordinates chunk_origin = {};
  bool in_chunk = false;
  int code = 0;             // errno of a read that failed
  bool ends_early = false;  // the file is shorter than its plan
  std::string damage = {};  // of a chunk's bytes
};

// The bytes of one chunk as they are stored and the filters that were left out, where libhdf5 has to find them. An
// empty result: the chunk was never written.
using FetchChunk = std::function<std::span<const std::byte>(const Coordinates& origin, uint32_t& filter_mask)>;

// Where the planned file's bytes are, and where decoded ones are kept.
struct FileBytes {
  int descriptor;
  const FileMap& map;
  ChunkCache& chunks;
};

// The box [start, start + count), which is inside of the dataset and not empty, into `sink`. `fetch` is used
// by Lane::chunk_calls alone. Throws BadPlace. [any]
void read_contiguous(const ArrayPlan& plan, const FileBytes& file, std::span<const uint64_t> start,
                     std::span<const uint64_t> count, RecordSink& sink);
void read_chunks(const ArrayPlan& plan, const FileBytes& file, std::span<const uint64_t> start,
                 std::span<const uint64_t> count, RecordSink& sink, const FetchChunk& fetch);

}  // namespace headroom
