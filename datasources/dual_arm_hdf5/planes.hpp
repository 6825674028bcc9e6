// Pixels to planes: [H, W, 3] to [3, H, W].
#pragma once

#include <cstddef>
#include <cstdint>

namespace dual_arm_hdf5 {

// planes[c * plane_stride + i] = pixels[3 * i + c].
void split_planes(const uint8_t* pixels, std::size_t count, uint8_t* planes, std::size_t plane_stride);

}  // namespace dual_arm_hdf5
