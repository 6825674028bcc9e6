// Made surfaces: opaque discs of all sizes over each other ("dead leaves"), whose edges and contrasts are those of
// natural pictures. In linear light, without seams.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "box.hpp"

namespace spike_hdf5 {

// Light of three colours, planes [3][height][width], in [0, 1].
struct Picture {
  explicit Picture(const Size& of) : size(of), light(3 * of.pixels()) {}
  float* plane(std::size_t colour) { return light.data() + colour * size.pixels(); }
  const float* plane(std::size_t colour) const { return light.data() + colour * size.pixels(); }

  Size size;
  std::vector<float> light;
};

struct Point {
  double down = 0.0, right = 0.0;
};

class Texture {
 public:
  explicit Texture(uint64_t key);

  // Row `y` of a view whose pixel (0, 0) shows the texture at `origin`, from column `left` on; between its points
  // interpolated. to[colour][i] for i < count.
  void row(const Point& origin, int64_t y, int64_t left, uint64_t count, const std::array<float*, 3>& to) const;

 private:
  static constexpr uint64_t kSide = 256;  // then it repeats
  void cover(const Point& centre, double radius, const std::array<float, 3>& colour);

  Picture picture_;
};

}  // namespace spike_hdf5
