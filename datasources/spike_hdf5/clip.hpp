// A clip: neighbouring frames of a sequence, one part of them, the way they are turned.
#pragma once

#include <span>

#include "orientation.hpp"
#include "sequence.hpp"

namespace spike_hdf5 {

struct Clip {
  uint64_t first = 0, frames = 0;
  Box crop;
  Orientation orientation = {};
};

// One a thread.
class ClipReader {
 public:
  ClipReader(const sdk::Host& host, const VoxelTransform& transform) : space_(host), transform_(transform) {}

  // planes[frames, 3, height, width] of float or uint8_t, as the sequence stores them.
  void read_images(Sequence& sequence, Image image, const Clip& clip, std::span<std::byte> planes);

  // to[frames, bins, height, width], at the size of the frames.
  void read_voxels(Sequence& sequence, const Clip& clip, std::span<float> to);

 private:
  Workspace space_;
  VoxelTransform transform_;
};

}  // namespace spike_hdf5
