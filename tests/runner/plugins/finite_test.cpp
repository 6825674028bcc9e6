#include "headroom/sdk/finite.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace headroom {
namespace {

template <class Real>
class Finite : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Finite, Reals);

// Blocks are 512 values: inside of one, at its ends, and in what is left over.
TYPED_TEST(Finite, FindsTheFirstBadValueAnywhere) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const size_t length : {0, 1, 511, 512, 513, 1700}) {
    std::vector<TypeParam> values(length);
    for (size_t i = 0; i < length; ++i) values[i] = i % 2 == 0 ? Limits::max() : Limits::denorm_min();
    EXPECT_FALSE(sdk::first_not_finite(std::span<const TypeParam>(values))) << length;
    for (const TypeParam bad : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
      for (const size_t at : {size_t{0}, size_t{511}, size_t{512}, size_t{1030}, length - 1}) {
        if (at >= length) continue;
        auto broken = values;
        broken[at] = broken.back() = bad;
        EXPECT_EQ(sdk::first_not_finite(std::span<const TypeParam>(broken)), at) << length;
      }
    }
  }
}

}  // namespace
}  // namespace headroom
