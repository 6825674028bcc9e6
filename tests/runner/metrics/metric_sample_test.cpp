#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "metrics/metrics.hpp"

namespace headroom {
namespace {

std::vector<uint64_t> chosen(uint64_t batches, uint64_t wanted, uint64_t seed, uint64_t epoch) {
  const MetricSample sample(batches, wanted, seed, epoch);
  std::vector<uint64_t> found;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    if (sample.contains(batch)) found.push_back(batch);
  }
  return found;
}

TEST(MetricSample, HasAsManyBatchesAsWanted) {
  for (const uint64_t batches : {1u, 2u, 5u, 37u, 256u, 257u, 11014u}) {
    for (const uint64_t wanted : {1u, 2u, 10u, 500u, 1000u, 20000u})
      EXPECT_EQ(chosen(batches, wanted, 3, 1).size(), std::min(batches, wanted)) << batches << ' ' << wanted;
  }
}

TEST(MetricSample, IsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(chosen(500, 50, 3, 7), chosen(500, 50, 3, 7));
  EXPECT_NE(chosen(500, 50, 3, 7), chosen(500, 50, 3, 8));
  EXPECT_NE(chosen(500, 50, 3, 7), chosen(500, 50, 4, 7));
}

TEST(MetricSample, OfNothingIsNothing) {
  EXPECT_FALSE(MetricSample().contains(0));
  EXPECT_FALSE(MetricSample(8, 0, 1, 1).contains(3));
  EXPECT_FALSE(MetricSample(8, 8, 1, 1).contains(8));
}

// Every batch, and every pair of batches, comes as often as any other: within five standard deviations.
TEST(MetricSample, IsUniformOverEpochs) {
  constexpr int epochs = 20000, batches = 23, wanted = 7;
  std::vector<int> alone(batches), together(batches * batches);
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto found = chosen(batches, wanted, 11, epoch);
    for (const uint64_t a : found) {
      ++alone[a];
      for (const uint64_t b : found) ++together[a * batches + b];
    }
  }
  const auto expect_near = [&](int times, double chance, const std::string& what) {
    EXPECT_NEAR(times, epochs * chance, 5.0 * std::sqrt(epochs * chance * (1.0 - chance))) << what;
  };
  const double one = double{wanted} / batches, two = one * (wanted - 1) / (batches - 1);
  for (int a = 0; a < batches; ++a) {
    expect_near(alone[a], one, "batch " + std::to_string(a));
    for (int b = 0; b < a; ++b)
      expect_near(together[a * batches + b], two, "batches " + std::to_string(a) + ", " + std::to_string(b));
  }
}

// The sample must not know the order of the epoch's samples: a batch's place there says nothing about its being chosen.
TEST(MetricSample, IsApartFromTheOrderOfTheSamples) {
  constexpr int epochs = 20000;
  constexpr uint64_t batches = 20;
  int early = 0;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Order order(Shuffle::global, batches, 5, epoch);
    const MetricSample sample(batches, 10, 5, epoch);
    for (uint64_t batch = 0; batch < batches; ++batch) early += sample.contains(batch) && order.at(batch) < 10;
  }
  EXPECT_NEAR(early, epochs * 5, 5.0 * std::sqrt(epochs * 1.32));  // hypergeometric: 10 * 0.5 * 0.5 * 10 / 19
}

}  // namespace
}  // namespace headroom
