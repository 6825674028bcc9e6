#include "data/record_sink.hpp"

#include <cstring>

namespace headroom {

RecordSink::RecordSink(const ArrayLayout& layout, std::span<const hr_array_target> targets)
    : layout_(layout), targets_(targets), record_bytes_(layout.record_bytes) {
  const ArrayMember& element = layout.element;
  const hr_array_target& first = targets.front();
  const bool plain = targets.size() == 1 && first.member == HR_WHOLE && same_dtype(first.dtype, element.dtype) &&
                     !element.big_endian && element.dtype.code != kDLBool &&
                     (first.stride_bytes == 0 || first.stride_bytes == record_bytes_);
  if (plain) plain_ = static_cast<std::byte*>(first.data);
}

void RecordSink::put(const std::byte* records, uint64_t index, uint64_t count) const {
  if (plain_ != nullptr) {
    std::memcpy(as_it_is(index), records, count * record_bytes_);
    return;
  }
  for (const hr_array_target& target : targets_) {
    const ArrayMember& member = target.member == HR_WHOLE ? layout_.element : layout_.members[target.member];
    const uint64_t stride = target.stride_bytes != 0 ? target.stride_bytes : member.values * (target.dtype.bits / 8u);
    convert({.from_dtype = member.dtype,
             .to_dtype = target.dtype,
             .swap = member.big_endian,
             .values = member.values,
             .from = records + member.offset,
             .to = static_cast<std::byte*>(target.data) + index * stride,
             .from_stride = record_bytes_,
             .to_stride = stride,
             .elements = count});
  }
}

}  // namespace headroom
