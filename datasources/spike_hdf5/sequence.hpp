// One sequence of a video: blurred frames, the sharp ones, and for each frame the spikes of its exposure, counted in K
// bins; or what is wanted of these. Opened by its path; frames are read by number, any part of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "box.hpp"
#include "headroom/datasource.hpp"
#include "spikes.hpp"
#include "voxel_transform.hpp"
#include "workspace.hpp"

namespace spike_hdf5 {

enum class Image { blur, sharp };
inline const char* name_of(Image image) { return image == Image::blur ? "blur" : "sharp"; }

// What a sequence is, known without reading a value.
struct Facts {
  uint64_t frames = 0;
  Size frame;
  bool float_images = false;  // float32 in [0, 1]; else uint8
  uint64_t bins = 0;          // 0: opened without its voxels
  Size native;                // of a voxel's plane; divides `frame`
  bool byte_counts = true;    // counts of at most 255; else floats
  uint64_t bins_at_once = 1;  // as many as are best read by one call
  bool operator==(const Facts&) const = default;
};

// Frames as large, beside voxels of `native`, as `like` has them.
inline Size frame_like(const Facts& like, const Size& native) {
  return {native.height * like.frame.height / like.native.height, native.width * like.frame.width / like.native.width};
}

// What is wanted of a sequence.
struct Wanted {
  bool blur = true, sharp = true, voxel = true;
  uint64_t bins = 0;        // 0: those it has
  SpikeCamera camera = {};  // of raw streams
  Facts like = {};          // what a sequence without images is taken for
};

// One thread at a time. Errors name file and dataset: HR_DATA_CORRUPT where the data is to blame.
class Sequence {
 public:
  virtual ~Sequence() = default;
  const Facts& facts() const { return facts_; }
  uint64_t image_bytes() const { return facts_.float_images ? 4 : 1; }  // of one value

  virtual std::vector<std::filesystem::path> files() const = 0;

  // `box` of one frame as planes [3, height, width] of float or uint8_t.
  virtual void read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) = 0;

  // Bins [first_bin, first_bin + bins) of `box`, which is in native pixels, transformed: [bins, height, width].
  virtual void read_voxel(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                          const VoxelTransform& transform, Workspace& space, float* to) {
    transform.apply(read_counts(frame, first_bin, bins, box, space), to);
  }

  // The same as they are counted, good until the workspace is used again. REQUIRES facts().byte_counts.
  virtual std::span<const uint8_t> read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                               Workspace& space) = 0;

 protected:
  Facts facts_;
};

[[noreturn]] inline void bad_data(const std::filesystem::path& file, const std::string& sentence) {
  throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + sentence);
}

}  // namespace spike_hdf5
