#include "data/hdf5_array.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "data/convert.hpp"
#include "data/hdf5_object.hpp"

namespace headroom {

namespace {

constexpr uint64_t block_bytes = 4 << 20;

std::string shown(std::span<const uint64_t> extents) {
  std::string text = "[";
  for (const uint64_t extent : extents) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

uint64_t product(std::span<const uint64_t> extents) {
  uint64_t all = 1;
  for (const uint64_t extent : extents) all *= extent;
  return all;
}

// Reused by every read of its thread, so that a steady reader touches no new memory.
std::byte* scratch(uint64_t bytes) {
  thread_local std::unique_ptr<std::byte[]> memory;
  thread_local uint64_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    size = bytes;
  }
  return memory.get();
}

// Visits the box in blocks of at most `most` elements (or one), in row-major order: whole trailing axes, a part of one
// axis, single steps of the axes before it. visit(start, count, elements before this block).
template <class Visit>
void each_block(std::span<const uint64_t> start, std::span<const uint64_t> count, uint64_t most, Visit&& visit) {
  const size_t axes = count.size();
  std::array<uint64_t, HR_MAX_DIMS> at{}, extent{};
  std::copy(start.begin(), start.end(), at.begin());
  std::copy(count.begin(), count.end(), extent.begin());
  const std::span<const uint64_t> block_start(at.data(), axes), block_count(extent.data(), axes);
  size_t whole = axes;  // axes [whole, axes) are never divided
  uint64_t inner = 1;
  while (whole > 0 && inner * count[whole - 1] <= most) inner *= count[--whole];
  if (whole == 0) return visit(block_start, block_count, uint64_t{0});

  const size_t divided = whole - 1;
  const uint64_t step = std::max<uint64_t>(1, most / inner);
  std::fill_n(extent.begin(), divided, 1);
  uint64_t done = 0;
  while (true) {
    for (uint64_t offset = 0; offset < count[divided]; offset += step) {
      at[divided] = start[divided] + offset;
      extent[divided] = std::min(step, count[divided] - offset);
      visit(block_start, block_count, done);
      done += extent[divided] * inner;
    }
    size_t axis = divided;
    while (axis > 0 && ++at[axis - 1] == start[axis - 1] + count[axis - 1]) {
      --axis;
      at[axis] = start[axis];
    }
    if (axis == 0) return;
  }
}

}  // namespace

Hdf5Array::Hdf5Array(const std::string& path, const std::string& dataset)
    : file_(Hdf5File::share(path)), name_(absolute_name(dataset)) {
  const hid_t file = file_->id();
  switch (find_object(file, name_, path)) {
    case Hdf5Kind::dataset:
      break;
    case Hdf5Kind::group:
      throw sdk::Error(HR_INVALID_ARGUMENT, what() + " is a group, not a dataset; it holds " + contents(file, name_));
    case Hdf5Kind::other:
      throw sdk::Error(HR_INVALID_ARGUMENT, what() + " is a named type, not a dataset");
  }
  {
    const Handle plain(H5Dopen2(file, name_.c_str(), H5P_DEFAULT));
    if (!plain) {
      throw sdk::Error(HR_DATA_CORRUPT, what() + " cannot be opened: " + hdf5_reason() +
                                            "; the file is damaged: copy it again or leave it out");
    }
    layout_ = read_layout(plain.get(), what());
  }
  file_->dataset(name_, chunk_cache_bytes(layout_.chunk_bytes()));
}

std::string Hdf5Array::what() const { return in_quotes(name_) + " of " + in_quotes(file_->path()); }

void Hdf5Array::check_box(std::span<const uint64_t> start, std::span<const uint64_t> count) const {
  for (size_t axis = 0; axis < layout_.shape.size(); ++axis) {
    const uint64_t extent = layout_.shape[axis];
    if (start[axis] <= extent && count[axis] <= extent - start[axis]) continue;
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " has shape " + shown(layout_.shape) + "; " + shown(count) +
                                              " from " + shown(start) + " reaches beyond it");
  }
}

const ArrayMember& Hdf5Array::checked_target(const hr_array_target& target) const {
  const bool whole = target.member == HR_WHOLE;
  if (whole && layout_.compound) {
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " is a compound of " + std::to_string(layout_.members.size()) +
                                              " members; each is read by its own number");
  }
  if (!whole && target.member >= layout_.members.size()) {
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " has " + std::to_string(layout_.members.size()) +
                                              " members; there is no member number " + std::to_string(target.member));
  }
  const ArrayMember& member = whole ? layout_.element : layout_.members[target.member];
  const std::string name = whole ? what() : "member " + in_quotes(member.name) + " of " + what();
  if (!member.readable()) {
    throw sdk::Error(HR_INVALID_ARGUMENT, name + " is of type " + member.type_name +
                                              "; integers, floats and bool of 1 to 8 bytes can be read");
  }
  if (!convertible(member.dtype, target.dtype)) {
    throw sdk::Error(HR_INVALID_ARGUMENT, name + " is " + array_dtype_name(member.dtype) +
                                              ", which does not convert to " + array_dtype_name(target.dtype) +
                                              " without loss; ask for a float or a wider type");
  }
  const uint64_t bytes = member.values * (target.dtype.bits / 8u);
  if (target.data == nullptr || (target.stride_bytes != 0 && target.stride_bytes < bytes)) {
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     name + " was asked for without room: one element takes " + std::to_string(bytes) + " bytes");
  }
  return member;
}

void Hdf5Array::read_block(std::span<const uint64_t> start, std::span<const uint64_t> count, void* records) const {
  const Hdf5Lock lock;
  const Hdf5File::Dataset& dataset = file_->dataset(name_, chunk_cache_bytes(layout_.chunk_bytes()));
  const hsize_t elements = product(count);
  std::array<hsize_t, HR_MAX_DIMS> from{}, extent{};
  std::copy(start.begin(), start.end(), from.begin());
  std::copy(count.begin(), count.end(), extent.begin());
  const Handle memory(H5Screate_simple(1, &elements, nullptr));
  herr_t status = count.empty() ? H5Sselect_all(dataset.space.get())
                                : H5Sselect_hyperslab(dataset.space.get(), H5S_SELECT_SET, from.data(), nullptr,
                                                      extent.data(), nullptr);
  if (status >= 0) {
    status =
        H5Dread(dataset.id.get(), layout_.memory_type.get(), memory.get(), dataset.space.get(), H5P_DEFAULT, records);
  }
  if (status >= 0) return;
  const std::string reason = hdf5_reason();
  const std::string sentence = what() + " cannot be read from " + shown(start) + " for " + shown(count) + ": " + reason;
  if (reason.find("errno = ") != std::string::npos) throw sdk::Error(HR_IO, sentence + "; check the disk");
  throw sdk::Error(HR_DATA_CORRUPT, sentence + "; the file is damaged: copy it again or leave it out");
}

void Hdf5Array::read_box(std::span<const uint64_t> start, std::span<const uint64_t> count,
                         std::span<const hr_array_target> targets) const {
  check_box(start, count);
  for (const hr_array_target& target : targets) checked_target(target);
  if (targets.empty() || product(count) == 0) return;

  const ArrayMember& element = layout_.element;
  const hr_array_target& first = targets.front();
  const bool as_it_is = targets.size() == 1 && first.member == HR_WHOLE && same_dtype(first.dtype, element.dtype) &&
                        !element.big_endian && element.dtype.code != kDLBool &&
                        (first.stride_bytes == 0 || first.stride_bytes == layout_.record_bytes);
  if (as_it_is) return read_block(start, count, first.data);

  each_block(start, count, block_bytes / layout_.record_bytes, [&](auto block_start, auto block_count, uint64_t done) {
    const uint64_t elements = product(block_count);
    std::byte* records = scratch(elements * layout_.record_bytes);
    read_block(block_start, block_count, records);
    for (const hr_array_target& target : targets) {
      const ArrayMember& member = target.member == HR_WHOLE ? element : layout_.members[target.member];
      const uint64_t stride = target.stride_bytes != 0 ? target.stride_bytes : member.values * (target.dtype.bits / 8u);
      convert({.from_dtype = member.dtype,
               .to_dtype = target.dtype,
               .swap = member.big_endian,
               .values = member.values,
               .from = records + member.offset,
               .to = static_cast<std::byte*>(target.data) + done * stride,
               .from_stride = layout_.record_bytes,
               .to_stride = stride,
               .elements = elements});
    }
  });
}

}  // namespace headroom
