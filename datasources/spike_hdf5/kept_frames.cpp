#include "kept_frames.hpp"

#include <algorithm>
#include <cstring>

namespace spike_hdf5 {

namespace {

const VoxelTransform as_stored(/*log1p=*/false, /*mean=*/0.0, /*std=*/1.0);

// `box` of planes of `size`, [planes, height, width] to the same of the box.
void copy_box(const std::byte* from, const Size& size, const Box& box, uint64_t planes, uint64_t value_bytes,
              std::byte* to) {
  const uint64_t row_bytes = box.size.width * value_bytes;
  for (uint64_t plane = 0; plane < planes; ++plane) {
    for (uint64_t y = 0; y < box.size.height; ++y, to += row_bytes) {
      const uint64_t first = (plane * size.height + box.top + y) * size.width + box.left;
      std::memcpy(to, from + first * value_bytes, row_bytes);
    }
  }
}

}  // namespace

KeptFrames::KeptFrames(const sdk::Host& host, std::string name, std::unique_ptr<Sequence> sequence)
    : host_(host), name_(std::move(name)), sequence_(std::move(sequence)) {
  facts_ = sequence_->facts();
}

std::optional<sdk::CacheBlock> KeptFrames::acquire(const char* what, uint64_t frame, uint64_t bytes) {
  return sdk::CacheBlock::acquire(host_, name_ + ":" + what + ":" + std::to_string(frame), bytes);
}

std::optional<sdk::CacheBlock> KeptFrames::image(Image image, uint64_t frame, Workspace& space) {
  auto block = acquire(name_of(image), frame, 3 * facts_.frame.pixels() * image_bytes());
  if (block && block->fresh()) {
    sequence_->read_image(image, frame, {0, 0, facts_.frame}, space, static_cast<std::byte*>(block->data()));
    block->publish();
  }
  return block;
}

std::optional<sdk::CacheBlock> KeptFrames::voxel(uint64_t frame, Workspace& space) {
  const uint64_t value_bytes = facts_.byte_counts ? 1 : sizeof(float), bin_bytes = facts_.native.pixels() * value_bytes;
  auto block = acquire("voxel", frame, facts_.bins * bin_bytes);
  if (!block || !block->fresh()) return block;
  const Box whole{0, 0, facts_.native};
  for (uint64_t first = 0; first < facts_.bins; first += facts_.bins_at_once) {
    const uint64_t bins = std::min(facts_.bins_at_once, facts_.bins - first);
    std::byte* to = static_cast<std::byte*>(block->data()) + first * bin_bytes;
    if (facts_.byte_counts) {
      std::ranges::copy(std::as_bytes(sequence_->read_counts(frame, first, bins, whole, space)), to);
    } else {
      sequence_->read_voxel(frame, first, bins, whole, as_stored, space, reinterpret_cast<float*>(to));
    }
  }
  block->publish();
  return block;
}

void KeptFrames::read_image(Image which, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) {
  const auto kept = image(which, frame, space);
  if (!kept) return sequence_->read_image(which, frame, box, space, planes);
  copy_box(kept->bytes().data(), facts_.frame, box, 3, image_bytes(), planes);
}

void KeptFrames::read_voxel(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                            const VoxelTransform& transform, Workspace& space, float* to) {
  if (facts_.byte_counts) return Sequence::read_voxel(frame, first_bin, bins, box, transform, space, to);
  const auto read = [&] { sequence_->read_voxel(frame, first_bin, bins, box, transform, space, to); };
  const auto kept = voxel(frame, space);
  if (!kept) return read();
  copy_box(kept->bytes().data() + first_bin * facts_.native.pixels() * sizeof(float), facts_.native, box, bins,
           sizeof(float), reinterpret_cast<std::byte*>(to));
  if (transform.apply({to, bins * box.size.pixels()})) read();  // which says what is wrong, and where
}

std::span<const uint8_t> KeptFrames::read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                                 Workspace& space) {
  const auto kept = voxel(frame, space);
  if (!kept) return sequence_->read_counts(frame, first_bin, bins, box, space);
  const std::span<uint8_t> cut = space.cut(bins * box.size.pixels());
  copy_box(kept->bytes().data() + first_bin * facts_.native.pixels(), facts_.native, box, bins, 1,
           std::as_writable_bytes(cut).data());
  return cut;
}

}  // namespace spike_hdf5
