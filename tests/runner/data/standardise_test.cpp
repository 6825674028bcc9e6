// The values of (x - mean) / std are the same to the bit whatever the processor's registers hold.
#include "data/standardise.hpp"

#include <gtest/gtest.h>

namespace headroom {
namespace {

template <class T>
class Standardise : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Standardise, Reals);

// Lengths around 4 and 8 values, channels last and channels first.
TYPED_TEST(Standardise, EveryValueAsByHand) {
  for (const int64_t channels : {1, 3, 4, 7, 8, 9, 20}) {
    for (const int64_t inner : {1, 2, 5, 8, 33}) {
      const FieldView view{.outer = 3, .channels = channels, .inner = inner};
      std::vector<double> mean, deviation;
      for (int64_t i = 0; i < channels; ++i) {
        mean.push_back(0.1 * static_cast<double>(i) - 0.7);
        deviation.push_back(0.3 + static_cast<double>(i) / 7.0);
      }
      const std::vector<double> factors = inverse(deviation);
      std::vector<TypeParam> values, expected;
      for (int64_t i = 0; i < 3 * channels * inner; ++i) {
        const auto channel = static_cast<std::size_t>(i / inner % channels);
        values.push_back(static_cast<TypeParam>(1.0 / static_cast<double>(i + 1)));
        const double centred = static_cast<double>(values.back()) - mean[channel];
        expected.push_back(static_cast<TypeParam>(centred * factors[channel]));
      }
      standardise(values.data(), view, mean, factors);
      EXPECT_EQ(values, expected) << channels << " channels, " << inner;
    }
  }
}

}  // namespace
}  // namespace headroom
