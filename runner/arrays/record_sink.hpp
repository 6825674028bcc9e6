// Where the records of a box go: each target takes its member, converted.
#pragma once

#include <span>

#include "arrays/block_copy.hpp"
#include "arrays/convert.hpp"
#include "arrays/hdf5_layout.hpp"

namespace headroom {

class RecordSink {
 public:
  // Of a box of `records`. `targets` have been checked against `layout`, and both outlive this. `looking`: at reals,
  // for NaN and infinity.
  RecordSink(const ArrayLayout& layout, std::span<const hr_array_target> targets, uint64_t records, bool looking);

  // Whole records, as the file has them. REQUIRES layout.as_in_file.
  RecordSink(const ArrayLayout& layout, std::byte* records)
      : layout_(layout), record_bytes_(layout.record_bytes), plain_(records) {}

  // Of the values that came so far, as far as they are looked at.
  bool finite() const { return finite_; }

  // A part of the same box that another thread puts through a copy of this.
  void add(const RecordSink& part) { finite_ = finite_ && part.finite_; }

  uint64_t record_bytes() const { return record_bytes_; }

  // Where record `index` of the box goes when records are wanted just as they stand in the file; else null. Whoever
  // writes there calls look_at() soon after.
  std::byte* as_it_is(uint64_t index) const { return plain_ != nullptr ? plain_ + index * record_bytes_ : nullptr; }
  void look_at(uint64_t index, uint64_t count) {
    if (look_ != Look::none) finite_ = all_finite(as_it_is(index), count * record_bytes_, look_) && finite_;
  }
  // Of what could be written there as well: it is looked at while it passes, or memory is only written.
  bool is_put_better() const { return look_ != Look::none || past_caches_; }

  // `records` are the `count` records from `index` on.
  void put(const std::byte* records, uint64_t index, uint64_t count);

 private:
  const ArrayLayout& layout_;
  std::span<const hr_array_target> targets_;
  uint64_t record_bytes_;
  std::byte* plain_ = nullptr;
  Look look_ = Look::none;  // of records that go as they stand
  bool looking_ = false, past_caches_ = false, finite_ = true;
};

}  // namespace headroom
