// Where the records of a box go. Whoever reads puts records in, in any order; each target gets its member, converted.
#pragma once

#include <span>

#include "arrays/block_copy.hpp"
#include "arrays/convert.hpp"
#include "arrays/hdf5_layout.hpp"

namespace headroom {

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
  // Whether put() is faster than a direct write all the same: it checks values while it copies, or stores past the
  // caches.
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

}  // namespace headroom
