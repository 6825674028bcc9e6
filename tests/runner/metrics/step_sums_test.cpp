#include <cmath>
#include <gtest/gtest.h>

#include "metrics/metrics.hpp"

namespace headroom {
namespace {

const std::vector<MetricInfo> kMetrics = {{.name = "mae", .unit = "m", .reduction = HR_MEAN},
                                          {.name = "rmse", .unit = "m", .reduction = HR_ROOT_MEAN},
                                          {.name = "unseen", .unit = "", .reduction = HR_MEAN}};

StepResult result(double loss_sum, double weight, std::vector<double> metrics, at::ScalarType dtype = at::kFloat) {
  return {at::full({}, loss_sum, dtype),
          at::full({}, weight, at::kDouble),
          {},
          at::tensor(metrics, at::kDouble).reshape({-1, 2})};
}

TEST(StepSums, PoolsOverEverythingAddedRatherThanAveragingBatches) {
  StepSums sums(3, at::kCPU);
  sums.add(result(10.0, 1.0, {4, 2, 16, 1, 0, 0}));
  sums.add(result(2.0, 3.0, {2, 4, 20, 3, 0, 0}));
  EXPECT_DOUBLE_EQ(sums.weight(), 4.0);
  EXPECT_DOUBLE_EQ(sums.loss(), 3.0);
  const Scalars expected = {
      {"val/loss", 3.0}, {"val/mae", 1.0}, {"val/rmse", 3.0}};  // sqrt(36 / 4); nothing counted for unseen
  EXPECT_EQ(sums.measured("val", kMetrics).values, expected);
}

TEST(StepSums, NothingCountedGivesNoValuesAndALossThatIsNotANumber) {
  StepSums sums(3, at::kCPU);
  sums.add(result(0.0, 0.0, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sums.weight(), 0.0);
  EXPECT_TRUE(std::isnan(sums.loss()));
  EXPECT_TRUE(sums.measured("val", kMetrics).values.empty());
}

TEST(StepSums, ABatchWithoutWeightChangesNothing) {
  StepSums sums(3, at::kCPU);
  sums.add(result(6.0, 2.0, {1, 2, 1, 2, 1, 2}));
  const Scalars before = sums.measured("val", kMetrics).values;
  sums.add(result(0.0, 0.0, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sums.measured("val", kMetrics).values, before);
}

TEST(StepSums, AddsInFloat64SoThatManySmallBatchesDoNotVanish) {
  StepSums sums(0, at::kCPU);
  sums.add(result(16777216.0, 1.0, {}));  // float32 cannot count past 2^24
  for (int i = 0; i < 100; ++i) sums.add(result(1.0, 1.0, {}));
  EXPECT_DOUBLE_EQ(sums.loss() * sums.weight(), 16777316.0);
}

TEST(StepSums, CountsExactlyBeyondWhatFloat32Can) {
  StepSums sums(0, at::kCPU);
  for (const at::ScalarType dtype : {at::kDouble, at::kLong}) {
    const at::Tensor weight = at::full({}, 16777217, dtype);
    sums.add(StepResult{at::full({}, 16777217.0f), weight, {}, at::zeros({0, 2}, at::kDouble)});
  }
  EXPECT_EQ(sums.weight(), 2 * 16777217.0);
}

TEST(StepSums, TakesOverOtherSumsAndForgets) {
  StepSums window(3, at::kCPU), epoch(3, at::kCPU);
  window.add(result(6.0, 2.0, {1, 2, 8, 2, 1, 2}));
  epoch.add(window);
  epoch.add(window);
  EXPECT_DOUBLE_EQ(epoch.weight(), 4.0);
  window.zero();
  EXPECT_EQ(window.weight(), 0.0);
  EXPECT_DOUBLE_EQ(epoch.loss(), 3.0);
}

TEST(StepSums, KeepsNoGraphAlive) {
  StepSums sums(0, at::kCPU);
  const at::Tensor weight = at::ones({}, at::TensorOptions().requires_grad(true));
  sums.add(StepResult{weight * 3.0, at::ones({}, at::kDouble), {}, at::zeros({0, 2}, at::kDouble)});
  EXPECT_FALSE(sums.tensor().requires_grad());
}

}  // namespace
}  // namespace headroom
