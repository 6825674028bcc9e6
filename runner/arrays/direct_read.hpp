// Reads boxes by a plan, without H5Dread: out of a contiguous dataset, or out of chunks. Large reads are cut into parts
// where threads share them (read_hooks.hpp).
#pragma once

#include <functional>
#include <span>

#include "arrays/block_copy.hpp"
#include "arrays/box.hpp"
#include "arrays/chunk_cache.hpp"
#include "arrays/convert.hpp"
#include "arrays/file_map.hpp"
#include "arrays/hdf5_layout.hpp"
#include "arrays/hdf5_plan.hpp"
#include "arrays/thread_buffer.hpp"

namespace headroom {

// Where the records of a box go. Whoever reads puts records in, in any order; each target gets its member, converted.
// One thread at a time; a copy of it may be used by another thread for other records of the same box.
class RecordSink {
 public:
  // For a box of `records` records. `layout` and `targets` outlive it, and the targets fit the layout. `check_finite`:
  // check float32 and float64 targets for NaN and infinity.
  RecordSink(const ArrayLayout& layout, std::span<const hr_array_target> targets, uint64_t records, bool check_finite);

  // Takes whole records as the file has them. REQUIRES layout.as_in_file.
  RecordSink(const ArrayLayout& layout, std::byte* records)
      : layout_(layout), record_bytes_(layout.record_bytes), plain_(records) {}

  // Whether all checked values so far are finite.
  bool finite() const { return finite_; }

  // Adds the result of a copy that took other records of the box.
  void add(const RecordSink& part) { finite_ = finite_ && part.finite_; }

  uint64_t record_bytes() const { return record_bytes_; }

  // The memory of record `index` of the box, where records are wanted as they are in the file; else NULL. Who writes
  // there directly calls check_records() while the bytes are in the cache.
  std::byte* place_of(uint64_t index) const { return plain_ != nullptr ? plain_ + index * record_bytes_ : nullptr; }
  void check_records(uint64_t index, uint64_t count) {
    if (check_ != FiniteCheck::none) finite_ = all_finite(place_of(index), count * record_bytes_, check_) && finite_;
  }
  // Whether put() is faster than writing directly: it checks values while it copies, or stores past the caches.
  bool prefers_put() const { return check_ != FiniteCheck::none || past_caches_; }

  // Takes the `count` records from `index` on; `records` are in the file's form.
  void put(const std::byte* records, uint64_t index, uint64_t count);

 private:
  const ArrayLayout& layout_;
  std::span<const hr_array_target> targets_;
  uint64_t record_bytes_;
  std::byte* plain_ = nullptr;
  FiniteCheck check_ = FiniteCheck::none;  // where plain_ is set
  bool checks_ = false, past_caches_ = false, finite_ = true;
};

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
// was written. No bytes: the chunk was never written. Throws BadPlace. REQUIRES: what the thread got before is gone.
using FetchChunk = std::function<ThreadBuffer::Use(const Coordinates& origin, uint32_t& filter_mask)>;

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
