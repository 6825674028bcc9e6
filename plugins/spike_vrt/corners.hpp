// The pixels around a place between them. Torch-free.
#pragma once

#include <cstdint>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

struct ImageSize {
  int64_t rows, columns, channels;  // [y, x, channel]
};

// The four pixels around a place: where their channels begin, and whether they are inside.
template <class T>
struct Corners {
  int64_t at[4];  // top left, top right, bottom left, bottom right; of some pixel where outside
  T inside[4];
  T right, below;  // how far from the top left
};

template <class T>
HEADROOM_KERNEL_BODY int64_t floor_of(T value) {
  const auto whole = static_cast<int32_t>(value);
  return whole - (value < static_cast<T>(whole) ? 1 : 0);
}

// false: all four are outside.
template <class T>
HEADROOM_KERNEL_BODY bool find_corners(const ImageSize& image, T y, T x, Corners<T>& corners) {
  if (!(y > T(-1) && y < static_cast<T>(image.rows) && x > T(-1) && x < static_cast<T>(image.columns))) return false;
  const int64_t top = floor_of(y), left = floor_of(x);
  corners.below = y - static_cast<T>(top), corners.right = x - static_cast<T>(left);
  const bool upper = top >= 0, lower = top + 1 < image.rows, near = left >= 0, far = left + 1 < image.columns;
  const int64_t first = upper ? top * image.columns : 0, second = lower ? (top + 1) * image.columns : 0;
  const int64_t begin = near ? left : 0, end = far ? left + 1 : 0;
  corners.at[0] = (first + begin) * image.channels, corners.at[1] = (first + end) * image.channels;
  corners.at[2] = (second + begin) * image.channels, corners.at[3] = (second + end) * image.channels;
  corners.inside[0] = T(upper && near), corners.inside[1] = T(upper && far);
  corners.inside[2] = T(lower && near), corners.inside[3] = T(lower && far);
  return true;
}

}  // namespace headroom
