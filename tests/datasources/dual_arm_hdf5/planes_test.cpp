#include "dual_arm_hdf5/planes.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace dual_arm_hdf5 {
namespace {

// Every length around the block of 16, with planes further apart than they are long.
TEST(Planes, AreTheChannelsForEveryLength) {
  for (std::size_t count = 0; count <= 70; ++count) {
    std::vector<uint8_t> pixels(3 * count), planes(3 * (count + 5), 0xEE);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37 + 11);
    split_planes(pixels.data(), count, planes.data(), count + 5);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(planes[c * (count + 5) + i], pixels[3 * i + c]) << count;
      for (std::size_t i = count; i < count + 5; ++i) ASSERT_EQ(planes[c * (count + 5) + i], 0xEE) << count;
    }
  }
}

}  // namespace
}  // namespace dual_arm_hdf5
