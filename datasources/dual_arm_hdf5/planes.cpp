#include "planes.hpp"

#include <cstring>

namespace dual_arm_hdf5 {

namespace {

using Bytes = unsigned char __attribute__((vector_size(16)));
constexpr std::size_t lanes = sizeof(Bytes);

// a[0], b[8], a[1], b[9], ...
Bytes low_with_high(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 24, 1, 25, 2, 26, 3, 27, 4, 28, 5, 29, 6, 30, 7, 31);
}
// a[8], b[0], a[9], b[1], ...
Bytes high_with_low(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 16, 9, 17, 10, 18, 11, 19, 12, 20, 13, 21, 14, 22, 15, 23);
}

// 16 pixels. Each round interleaves the first 24 bytes with the last 24: byte i goes to 2 i mod 47, so that after four
// rounds byte 3 p + c stands at 16 (3 p + c) mod 47 = 16 c + p.
void split_sixteen(const uint8_t* pixels, uint8_t* planes, std::size_t plane_stride) {
  Bytes a, b, c;
  std::memcpy(&a, pixels, lanes);
  std::memcpy(&b, pixels + lanes, lanes);
  std::memcpy(&c, pixels + 2 * lanes, lanes);
  for (int round = 0; round < 4; ++round) {
    const Bytes first = low_with_high(a, b), second = high_with_low(a, c), third = low_with_high(b, c);
    a = first;
    b = second;
    c = third;
  }
  std::memcpy(planes, &a, lanes);
  std::memcpy(planes + plane_stride, &b, lanes);
  std::memcpy(planes + 2 * plane_stride, &c, lanes);
}

}  // namespace

void split_planes(const uint8_t* pixels, std::size_t count, uint8_t* planes, std::size_t plane_stride) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) split_sixteen(pixels + 3 * i, planes + i, plane_stride);
  for (; i < count; ++i) {
    for (std::size_t c = 0; c < 3; ++c) planes[c * plane_stride + i] = pixels[3 * i + c];
  }
}

}  // namespace dual_arm_hdf5
