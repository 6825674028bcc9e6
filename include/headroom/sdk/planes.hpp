// Interleaved pixels to planes at the speed of memory: [height, width, 3] to [3, height, width].
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace headroom::sdk {

namespace detail {

using Bytes = unsigned char __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

// a[0], b[8], a[1], b[9], ...
inline Bytes low_with_high(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 24, 1, 25, 2, 26, 3, 27, 4, 28, 5, 29, 6, 30, 7, 31);
}
// a[8], b[0], a[9], b[1], ...
inline Bytes high_with_low(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 16, 9, 17, 10, 18, 11, 19, 12, 20, 13, 21, 14, 22, 15, 23);
}

// 16 pixels. Each round interleaves the first 24 bytes with the last 24: byte i goes to 2 i mod 47, so that after four
// rounds byte 3 p + c stands at 16 (3 p + c) mod 47 = 16 c + p.
inline void split_lanes(Bytes& a, Bytes& b, Bytes& c) {
  for (int round = 0; round < 4; ++round) {
    const Bytes first = low_with_high(a, b), second = high_with_low(a, c), third = low_with_high(b, c);
    a = first;
    b = second;
    c = third;
  }
}

// 4 pixels: x0 y0 z0 x1, y1 z1 x2 y2, z2 x3 y3 z3.
inline void split_lanes(Floats& a, Floats& b, Floats& c) {
  const Floats front = __builtin_shufflevector(a, b, 0, 3, 1, 4), back = __builtin_shufflevector(b, c, 2, 5, 3, 6);
  const Floats last = __builtin_shufflevector(a, b, 2, 5, 2, 5);
  a = __builtin_shufflevector(front, back, 0, 1, 4, 5);
  b = __builtin_shufflevector(front, back, 2, 3, 6, 7);
  c = __builtin_shufflevector(last, c, 0, 1, 4, 7);
}

}  // namespace detail

// planes[c * plane_stride + i] = pixels[3 * i + c] for i < count. [any]
template <class T>
void split_planes(const T* pixels, std::size_t count, T* planes, std::size_t plane_stride) {
  static_assert(std::is_same_v<T, uint8_t> || std::is_same_v<T, float>);
  using Lanes = std::conditional_t<std::is_same_v<T, float>, detail::Floats, detail::Bytes>;
  constexpr std::size_t lanes = sizeof(Lanes) / sizeof(T);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Lanes part[3];
    std::memcpy(part, pixels + 3 * i, sizeof part);
    detail::split_lanes(part[0], part[1], part[2]);
    for (std::size_t c = 0; c < 3; ++c) std::memcpy(planes + c * plane_stride + i, &part[c], sizeof(Lanes));
  }
  for (; i < count; ++i) {
    for (std::size_t c = 0; c < 3; ++c) planes[c * plane_stride + i] = pixels[3 * i + c];
  }
}

}  // namespace headroom::sdk
