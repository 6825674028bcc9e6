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

// The values are torch.optim.lr_scheduler.OneCycleLR's.
TEST(Schedule, OneCycleDoesWhatLibTorchDoes) {
  const Schedule usual({.name = "one_cycle"}, 0.1, 10, 20);
  const std::pair<int64_t, double> expected[] = {{0, 0.004},
                                                 {1, 0.013167184270002533},
                                                 {4, 0.09083281572999748},
                                                 {5, 0.1},
                                                 {6, 0.09874640062350874},
                                                 {12, 0.0500002},
                                                 {18, 0.0012539993764912555},
                                                 {19, 4e-07}};
  for (const auto& [step, lr] : expected) EXPECT_NEAR(usual.at(step), lr, 1e-15) << step;
  EXPECT_NEAR(usual.at(500), 4e-07, 1e-15) << "past the end it stays";
  const Schedule other({.name = "one_cycle", .pct_start = 0.45, .div_factor = 5, .final_div_factor = 10}, 1.0, 3, 10);
  const double rates[] = {0.2,
                          0.3506040792565065,
                          0.6890083735825256,
                          0.9603875471609676,
                          0.9801515570711038,
                          0.8308817596331898,
                          0.5797342707539098,
                          0.3064466436290757,
                          0.09778576891272116,
                          0.02};
  for (int64_t step = 0; step < 10; ++step) EXPECT_NEAR(other.at(step), rates[step], 1e-14) << step;
}

TEST(Schedule, OneCycleOfFewStepsDividesByNothing) {
  for (const int64_t steps : {0, 1, 2, 3}) {
    for (const double part : {0.0, 0.5, 1.0}) {
      const Schedule schedule({.name = "one_cycle", .warmup_steps = 2, .pct_start = part}, 1.0, 1, steps);
      for (int64_t step = 0; step < 4; ++step) {
        EXPECT_GT(schedule.at(step), 0.0) << steps << " " << part;
        EXPECT_LE(schedule.at(step), 1.0) << steps << " " << part;
      }
    }
  }
}

// The values are torch.optim.lr_scheduler.CosineAnnealingWarmRestarts's, asked at fractions of epochs.
TEST(Schedule, CosineRestartsDoesWhatLibTorchDoes) {
  const Schedule longer({.name = "cosine_restarts", .min_lr = 0.01, .restart_epochs = 2, .restart_factor = 2}, 0.5, 10,
                        1000);
  const std::pair<int64_t, double> expected[] = {{0, 0.5},  {5, 0.4282411613907041},   {19, 0.013016356554191274},
                                                 {20, 0.5}, {25, 0.48135048546526527}, {59, 0.01075525323538365},
                                                 {60, 0.5}, {61, 0.49981111387897714}, {139, 0.010188886121022889},
                                                 {140, 0.5}};
  for (const auto& [step, lr] : expected) EXPECT_NEAR(longer.at(step), lr, 1e-12) << step;
  const Schedule equal({.name = "cosine_restarts", .restart_epochs = 3}, 0.5, 10, 1000);
  const std::pair<int64_t, double> again[] = {{0, 0.5},  {15, 0.25}, {29, 0.0013695261579316775},
                                              {30, 0.5}, {45, 0.25}, {60, 0.5}};
  for (const auto& [step, lr] : again) EXPECT_NEAR(equal.at(step), lr, 1e-12) << step;
}

// Where the logarithms round, the first step of a fall would be the last of the one before, or the other way round.
TEST(Schedule, CosineRestartsBeginsEachFallAtLr) {
  const double factor = 3.0;
  const Schedule schedule({.name = "cosine_restarts", .warmup_steps = 4, .restart_epochs = 1, .restart_factor = factor},
                          1.0, 7, 1000);
  int64_t begin = 4, period = 7;
  for (int fall = 0; fall < 12; ++fall) {
    EXPECT_DOUBLE_EQ(schedule.at(begin), 1.0) << "fall " << fall;
    EXPECT_LT(schedule.at(begin + period - 1), 0.06) << "fall " << fall;
    begin += period;
    period *= 3;
  }
}

TEST(Schedule, TableIsLinearBetweenItsPoints) {
  const Schedule schedule({.name = "table", .warmup_steps = 9, .points = {{1, 0.5}, {3, 1.0}, {3, 0.25}, {5, 0.0}}},
                          0.8, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.4) << "before the first point its factor holds";
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(29), 0.8 * 0.975);
  EXPECT_DOUBLE_EQ(schedule.at(30), 0.2) << "two points at one epoch are a jump";
  EXPECT_DOUBLE_EQ(schedule.at(40), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(50), 0.0);
  EXPECT_DOUBLE_EQ(schedule.at(99), 0.0) << "behind the last point its factor holds";
}

TEST(Schedule, PlateauDropsAsOftenAsItIsTold) {
  const Schedule schedule({.name = "plateau", .warmup_steps = 2, .min_lr = 0.02, .plateau_factor = 0.5}, 0.1, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(0, 1), 0.05) << "warm-up";
  EXPECT_DOUBLE_EQ(schedule.at(50), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(50, 1), 0.05);
  EXPECT_DOUBLE_EQ(schedule.at(50, 2), 0.025);
  EXPECT_DOUBLE_EQ(schedule.at(50, 3), 0.02);
}

TEST(Schedule, TellsWhetherItSpansTheRun) {
  for (const char* name : {"cosine", "linear", "one_cycle"}) EXPECT_TRUE(spans_the_run({.name = name})) << name;
  for (const char* name : {"constant", "cosine_restarts", "plateau", "step", "table"})
    EXPECT_FALSE(spans_the_run({.name = name})) << name;
}

TEST(Schedule, WarmUpAsLongAsTheRunDividesByNothing) {
  const Schedule schedule({.name = "cosine", .warmup_steps = 10}, 1.0, 10, 10);
  EXPECT_DOUBLE_EQ(schedule.at(9), 1.0);
  EXPECT_TRUE(std::isfinite(schedule.at(10)));
}

}  // namespace
}  // namespace headroom
