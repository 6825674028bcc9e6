#include "arrays/direct_read.hpp"

namespace headroom {

namespace {

FiniteCheck check_for(DLDataType dtype) {
  if (dtype.code != kDLFloat || dtype.lanes != 1) return FiniteCheck::none;
  return dtype.bits == 32 ? FiniteCheck::float32 : dtype.bits == 64 ? FiniteCheck::float64 : FiniteCheck::none;
}

}  // namespace

RecordSink::RecordSink(const ArrayLayout& layout, std::span<const hr_array_target> targets, uint64_t records,
                       bool check_finite)
    : layout_(layout),
      targets_(targets),
      record_bytes_(layout.record_bytes),
      checks_(check_finite),
      past_caches_(records * layout.record_bytes >= past_caches_bytes) {
  const ArrayMember& element = layout.element;
  // There is at least one: read_box() returns before where there is none.
  const hr_array_target& first = targets.front();
  // Bool is not plain, since any byte but 0 has to become 1.
  const bool plain = targets.size() == 1 && first.member == HR_WHOLE && same_dtype(first.dtype, element.dtype) &&
                     !element.big_endian && element.dtype.code != kDLBool &&
                     (first.stride_bytes == 0 || first.stride_bytes == record_bytes_);
  if (plain) plain_ = static_cast<std::byte*>(first.data);
  if (plain && check_finite) check_ = check_for(first.dtype);
}

void RecordSink::put(const std::byte* records, uint64_t index, uint64_t count) {
  if (plain_ != nullptr) {
    finite_ = copy_block(place_of(index), records, count * record_bytes_, check_, past_caches_) && finite_;
    return;
  }
  for (const hr_array_target& target : targets_) {
    const ArrayMember& member = target.member == HR_WHOLE ? layout_.element : layout_.members[target.member];
    const uint64_t stride = target.stride_bytes != 0 ? target.stride_bytes : member.values * (target.dtype.bits / 8u);
    finite_ = convert({.from_dtype = member.dtype,
                       .to_dtype = target.dtype,
                       .swap = member.big_endian,
                       .values = member.values,
                       .from = records + member.offset,
                       .to = static_cast<std::byte*>(target.data) + index * stride,
                       .from_stride = record_bytes_,
                       .to_stride = stride,
                       .elements = count,
                       .check = checks_ ? check_for(target.dtype) : FiniteCheck::none,
                       .past_caches = past_caches_}) &&
              finite_;
  }
}

}  // namespace headroom
