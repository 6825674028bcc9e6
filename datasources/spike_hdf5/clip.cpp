#include "clip.hpp"

#include <algorithm>

#include "upsampling.hpp"

namespace spike_hdf5 {

namespace {

template <class T>
void orient_all(T* planes, uint64_t count, const Clip& clip) {
  for (uint64_t i = 0; i < count; ++i) orient(planes + i * clip.crop.size.pixels(), clip.crop.size, clip.orientation);
}

}  // namespace

void ClipReader::read_images(Sequence& sequence, Image image, const Clip& clip, std::span<std::byte> planes) {
  const uint64_t frame_bytes = 3 * clip.crop.size.pixels() * sequence.image_bytes();
  for (uint64_t i = 0; i < clip.frames; ++i) {
    std::byte* frame = planes.data() + i * frame_bytes;
    sequence.read_image(image, clip.first + i, clip.crop, space_, frame);
    if (sequence.facts().float_images) {
      orient_all(reinterpret_cast<float*>(frame), 3, clip);
    } else {
      orient_all(reinterpret_cast<uint8_t*>(frame), 3, clip);
    }
  }
}

void ClipReader::read_voxels(Sequence& sequence, const Clip& clip, std::span<float> to) {
  const Facts& facts = sequence.facts();
  const bool as_stored = facts.native == facts.frame;
  Upsampling upsampling(facts.native, facts.frame, clip.crop);
  const Box box = as_stored ? clip.crop : upsampling.source();
  const uint64_t native_pixels = box.size.pixels(), pixels = clip.crop.size.pixels();
  float* bin = to.data();
  for (uint64_t i = 0; i < clip.frames; ++i) {
    for (uint64_t first = 0; first < facts.bins; first += facts.bins_at_once) {
      const uint64_t bins = std::min(facts.bins_at_once, facts.bins - first);
      float* native = as_stored ? bin : space_.voxels(bins * native_pixels).data();
      sequence.read_voxel(clip.first + i, first, bins, box, transform_, space_, native);
      for (uint64_t b = 0; b < bins && !as_stored; ++b) upsampling.apply(native + b * native_pixels, bin + b * pixels);
      orient_all(bin, bins, clip);
      bin += bins * pixels;
    }
  }
}

}  // namespace spike_hdf5
