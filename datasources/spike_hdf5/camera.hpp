// Two cameras on one made scene: one whose frames blur what moves while they are exposed, one whose pixels fire
// whenever they have gathered a certain light.
#pragma once

#include <cstdint>
#include <vector>

#include "scene.hpp"

namespace spike_hdf5 {

struct CameraPlan {
  Size frame;
  uint64_t bins = 1, steps_per_bin = 1;
  uint64_t spike_factor = 1;  // pixels of a frame along the side of a spike camera's
  uint64_t steps() const { return bins * steps_per_bin; }
};

struct Exposure {
  std::vector<float> blur, sharp;  // [height, width, 3] in [0, 1], as a display takes them
  std::vector<uint8_t> voxel;      // [bins, height, width] counts of spikes, at the spike camera's size
};

class Camera {
 public:
  // `key`: of the light that the spike camera's pixels hold at first.
  Camera(Scene scene, const CameraPlan& plan, uint64_t key);

  // The next frame. It is exposed from one frame's time to the next; the sharp frame is of the middle.
  const Exposure& next();

 private:
  void integrate(const Picture& light, uint64_t bin);

  Scene scene_;
  CameraPlan plan_;
  uint64_t frame_ = 0;
  Picture light_, gathered_;
  std::vector<float> charge_, seen_;
  Exposure exposure_;
};

}  // namespace spike_hdf5
