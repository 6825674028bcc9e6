#include <gtest/gtest.h>

#include "train/retry.hpp"

namespace headroom {
namespace {

TEST(MicroBatch, HalvesDownToOneAndGrowsBackOnEvidence) {
  MicroBatch size(12, /*adapts=*/true);
  for (const int64_t expected : {6, 3, 2, 1}) {
    EXPECT_TRUE(size.halve());
    EXPECT_EQ(size.size(), expected);
  }
  EXPECT_FALSE(size.halve());
  int64_t windows = 0;
  while (!size.succeeded(/*peak_bytes=*/100, /*growing_bytes=*/50, /*limit_bytes=*/0)) ASSERT_LT(++windows, 10000);
  EXPECT_EQ(size.size(), 2);
  EXPECT_GE(windows, 300);  // four failures: 20 x 2^4 windows less one
}

TEST(MicroBatch, DoesNotGrowIntoALimit) {
  MicroBatch size(8, /*adapts=*/true);
  size.halve();
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(size.succeeded(100, 50, 150));
  int windows = 0;
  while (!size.succeeded(100, 50, 167)) ASSERT_LT(++windows, 100);
  EXPECT_EQ(size.size(), 8);
}

TEST(MicroBatch, FixedOnesStay) {
  MicroBatch size(8, /*adapts=*/false);
  EXPECT_FALSE(size.halve());
  size.restore(2);
  EXPECT_EQ(size.size(), 8);
}

}  // namespace
}  // namespace headroom
