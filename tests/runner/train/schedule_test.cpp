#include "train/schedule.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

namespace headroom {
namespace {

TEST(Schedule, ConstantStaysWhereItIs) {
  const Schedule schedule({}, 0.5, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(1'000'000), 0.5);
}

TEST(Schedule, WarmUpRisesInEqualStepsAndEndsAtLr) {
  const Schedule schedule({.name = "constant", .warmup_steps = 4}, 0.8, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.2);  // never a step with learning rate 0
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.8);
}

TEST(Schedule, WarmUpEpochsMayBeAFraction) {
  const Schedule schedule({.name = "constant", .warmup_epochs = 0.5}, 1.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(4), 1.0);
}

TEST(Schedule, CosineFallsFromLrAfterWarmUpToMinLrAtTheEnd) {
  const Schedule schedule({.name = "cosine", .warmup_epochs = 2, .min_lr = 0.1}, 1.0, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(19), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(20), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(60), 0.1 + 0.9 * 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(40), 0.1 + 0.9 * 0.5 * (1.0 + std::cos(std::numbers::pi * 0.25)));
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(5000), 0.1);  // past the end it stays
}

TEST(Schedule, LinearFallsEvenly) {
  const Schedule schedule({.name = "linear", .min_lr = 0.2}, 1.0, 10, 50);
  EXPECT_DOUBLE_EQ(schedule.at(0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(25), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(50), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(51), 0.2);
}

TEST(Schedule, StepDropsByGammaAndNeverBelowMinLr) {
  const Schedule schedule({.name = "step", .warmup_steps = 5, .min_lr = 0.05, .step_epochs = 2, .gamma = 0.5}, 0.4, 10,
                          1000);
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(24), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(25), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(45), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(65), 0.05);
  EXPECT_DOUBLE_EQ(schedule.at(85), 0.05);
}

TEST(Schedule, WarmUpAsLongAsTheRunDividesByNothing) {
  const Schedule schedule({.name = "cosine", .warmup_steps = 10}, 1.0, 10, 10);
  EXPECT_DOUBLE_EQ(schedule.at(9), 1.0);
  EXPECT_TRUE(std::isfinite(schedule.at(10)));
}

}  // namespace
}  // namespace headroom
