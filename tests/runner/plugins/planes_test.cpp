#include "headroom/sdk/planes.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace headroom {
namespace {

template <class T>
class Planes : public testing::Test {};
using Types = testing::Types<uint8_t, float>;
TYPED_TEST_SUITE(Planes, Types);

// Every length around the block of 16 or 4, with planes further apart than they are long.
TYPED_TEST(Planes, AreTheChannelsForEveryLength) {
  for (std::size_t count = 0; count <= 70; ++count) {
    std::vector<TypeParam> pixels(3 * count), planes(3 * (count + 5), 0xEE);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<TypeParam>((i * 37 + 11) % 256);
    sdk::split_planes(pixels.data(), count, planes.data(), count + 5);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(planes[c * (count + 5) + i], pixels[3 * i + c]) << count;
      for (std::size_t i = count; i < count + 5; ++i) ASSERT_EQ(planes[c * (count + 5) + i], 0xEE) << count;
    }
  }
}

}  // namespace
}  // namespace headroom
