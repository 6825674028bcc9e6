#include "dual_arm_hdf5/statistics.hpp"

#include <cmath>
#include <gtest/gtest.h>

#include "dual_arm_hdf5/split.hpp"

namespace dual_arm_hdf5 {
namespace {

// From a generator of our own, so that the test needs no other: values whose mean and std are those of numpy in
// float64.
TEST(Statistics, AreMeanAndUnbiasedDeviationForAnyNumberOfRows) {
  for (const uint64_t rows : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 1000u, 70001u}) {
    constexpr uint64_t columns = 3;
    ColumnStatistics statistics(rows, columns);
    double sum[columns] = {}, squares[columns] = {};
    uint64_t state = rows;
    for (uint64_t r = 0; r < rows; ++r) {
      float row[columns];
      for (uint64_t c = 0; c < columns; ++c) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        row[c] = static_cast<float>(static_cast<double>(state >> 40) * 0x1p-24 + static_cast<double>(c));
        sum[c] += row[c];
        squares[c] += static_cast<double>(row[c]) * row[c];
      }
      statistics.add(row);
    }
    const Statistics found = statistics.finish(1e-2f);
    for (uint64_t c = 0; c < columns; ++c) {
      const double n = static_cast<double>(rows), mean = sum[c] / n;
      const double deviation = rows > 1 ? std::sqrt(std::max(0.0, squares[c] - n * mean * mean) / (n - 1.0)) : 0.0;
      EXPECT_NEAR(found.mean[c], mean, 4e-7 * (1.0 + mean)) << rows;
      EXPECT_NEAR(found.std[c], std::max(deviation, 1e-2), 1e-5) << rows;
    }
  }
}

TEST(Statistics, DeviationIsAtLeastTheLeast) {
  ColumnStatistics statistics(100, 2);
  for (int r = 0; r < 100; ++r) statistics.add(std::vector{1.5f, r % 2 == 0 ? 0.0f : 0.01f});
  const Statistics found = statistics.finish(1e-2f);
  EXPECT_EQ(found.std, (std::vector{1e-2f, 1e-2f}));
  EXPECT_EQ(found.mean[0], 1.5f);
}

// What numpy prints for RandomState(seed).permutation(n).
TEST(Split, IsNumpysLegacyPermutation) {
  EXPECT_EQ(numpy_permutation(1, 4), (std::vector<uint64_t>{3, 2, 0, 1}));
  EXPECT_EQ(numpy_permutation(1, 10), (std::vector<uint64_t>{2, 9, 6, 4, 0, 3, 1, 7, 8, 5}));
  EXPECT_EQ(numpy_permutation(0, 10), (std::vector<uint64_t>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
  EXPECT_EQ(numpy_permutation(7, 1), (std::vector<uint64_t>{0}));
  const EpisodeSplit split = divide_episodes(10, 0.8, 1);
  EXPECT_EQ(split.train, (std::vector<uint64_t>{2, 9, 6, 4, 0, 3, 1, 7}));
  EXPECT_EQ(split.val, (std::vector<uint64_t>{8, 5}));
}

}  // namespace
}  // namespace dual_arm_hdf5
