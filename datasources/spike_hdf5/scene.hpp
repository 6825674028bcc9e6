// A made scene: a textured background and textured discs before it, each on its own way.
#pragma once

#include <vector>

#include "texture.hpp"

namespace spike_hdf5 {

class Scene {
 public:
  // `speed`: of the background, in pixels a frame, on average.
  Scene(uint64_t key, const Size& size, double speed);

  // The light at a time, in frames.
  void render(double time, Picture& picture);

 private:
  // Straight on, and swaying.
  struct Way {
    Point start, velocity, sway;
    double phase = 0.0, pace = 0.0;
    Point at(double time) const;
  };
  struct Disc {
    Way way;
    double radius = 0.0;
    Texture texture;
  };
  static Way way_of(uint64_t key, const Size& size, double speed);
  void draw(const Disc& disc, double time, Picture& picture);

  Way background_way_;
  Texture background_;
  std::vector<Disc> discs_;
  std::vector<float> row_;
};

}  // namespace spike_hdf5
