#include "spike_hdf5/voxel_transform.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace spike_hdf5 {
namespace {

// Lengths that are no multiple of the blocks counts are looked up in.
TEST(VoxelTransform, CountsAndFloatsAreTransformedAlike) {
  for (const bool log1p : {true, false}) {
    const VoxelTransform transform(log1p, 0.25, 1.5);
    for (const std::size_t count : {1u, 255u, 256u, 1000u}) {
      std::vector<uint8_t> counts;
      for (std::size_t i = 0; i < count; ++i) counts.push_back(static_cast<uint8_t>(i * 31));
      std::vector<float> values(counts.begin(), counts.end()), of_counts(count);
      ASSERT_FALSE(transform.apply(values));
      transform.apply(counts, of_counts.data());
      ASSERT_EQ(values, of_counts);
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<float>(counts[i]);
        ASSERT_EQ(values[i], ((log1p ? std::log1p(value) : value) - 0.25f) / 1.5f);
      }
    }
  }
}

TEST(VoxelTransform, OfWhatIsNoWholeNumber) {
  for (const float odd : {0.5f, 255.5f, 256.0f, 1000.0f, 3.0e9f}) {
    std::vector<float> values(512, 2.0f);
    values[300] = odd;
    ASSERT_FALSE(VoxelTransform(true, 0.0, 1.0).apply(values));
    EXPECT_EQ(values[0], std::log1p(2.0f));
    EXPECT_EQ(values[300], std::log1p(odd));
    EXPECT_EQ(values[301], std::log1p(2.0f));
  }
}

TEST(VoxelTransform, FindsTheFirstThatIsNoNumber) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0f}) {
    for (const std::size_t at : {0u, 255u, 700u, 999u}) {
      std::vector<float> values(1000, 1.0f);
      values[at] = wrong;
      EXPECT_EQ(VoxelTransform(true, 0.0, 1.0).apply(values), at);
    }
  }
  std::vector<float> standardised = {-1.0f, 2.0f};
  EXPECT_FALSE(VoxelTransform(false, 0.0, 1.0).apply(standardised));
  EXPECT_EQ(standardised[0], -1.0f);
}

}  // namespace
}  // namespace spike_hdf5
