// Where the records of a box go: each target takes its member, converted.
#pragma once

#include <span>

#include "data/convert.hpp"
#include "data/hdf5_layout.hpp"

namespace headroom {

class RecordSink {
 public:
  // `targets` have been checked against `layout`, and both outlive this.
  RecordSink(const ArrayLayout& layout, std::span<const hr_array_target> targets);

  // Whole records, as the file has them. REQUIRES layout.as_in_file.
  RecordSink(const ArrayLayout& layout, std::byte* records)
      : layout_(layout), record_bytes_(layout.record_bytes), plain_(records) {}

  uint64_t record_bytes() const { return record_bytes_; }

  // Where record `index` of the box goes when records are wanted just as they stand in the file; else null.
  std::byte* as_it_is(uint64_t index) const { return plain_ != nullptr ? plain_ + index * record_bytes_ : nullptr; }

  // `records` are the `count` records from `index` on.
  void put(const std::byte* records, uint64_t index, uint64_t count) const;

 private:
  const ArrayLayout& layout_;
  std::span<const hr_array_target> targets_;
  uint64_t record_bytes_;
  std::byte* plain_ = nullptr;
};

}  // namespace headroom
