// Mirrored, flipped and transposed frames: the eight ways a square can lie.
#pragma once

#include <algorithm>
#include <cstddef>

#include "box.hpp"

namespace spike_hdf5 {

// Mirrored first, transposed last.
struct Orientation {
  bool mirrored = false;    // left and right change places
  bool flipped = false;     // top and bottom
  bool transposed = false;  // rows and columns; square frames only
};

// In place.
template <class T>
void orient(T* plane, const Size& size, const Orientation& orientation) {
  const std::size_t height = size.height, width = size.width;
  if (orientation.mirrored) {
    for (std::size_t y = 0; y < height; ++y) std::reverse(plane + y * width, plane + (y + 1) * width);
  }
  if (orientation.flipped) {
    for (std::size_t y = 0; y < height / 2; ++y)
      std::swap_ranges(plane + y * width, plane + (y + 1) * width, plane + (height - 1 - y) * width);
  }
  if (orientation.transposed) {
    constexpr std::size_t tile = 16;  // whose rows and columns stay in the cache
    for (std::size_t top = 0; top < height; top += tile) {
      for (std::size_t left = 0; left <= top; left += tile) {
        for (std::size_t y = top; y < std::min(top + tile, height); ++y) {
          for (std::size_t x = left; x < std::min(left + tile, y); ++x)
            std::swap(plane[y * width + x], plane[x * width + y]);
        }
      }
    }
  }
}

}  // namespace spike_hdf5
