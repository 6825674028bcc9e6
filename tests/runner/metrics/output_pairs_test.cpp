// Which outputs are measured against each other, and what the results are called.
#include "textbook.hpp"

namespace headroom {
namespace {

std::string names(const std::vector<OutputPair>& pairs) {
  std::string all;
  for (const MetricInfo& metric : host_metrics(pairs)) {
    all += metric.name + " [" + metric.unit + (metric.better == HR_HIGHER ? "] higher;" : "];");
  }
  return all;
}

TEST(OutputPairs, AreNamedAndHaveTheUnitOfThePrediction) {
  EXPECT_EQ(names(pairs(true)), "mse [rad^2];mae [rad];rmse [rad];r2 [] higher;");
  const std::vector<OutputInfo> speed = {{"v", "m/s"}, {"t", "", HR_TARGET}};
  EXPECT_EQ(names(pair_outputs("net", speed, {})), "mse [(m/s)^2];mae [m/s];rmse [m/s];r2 [] higher;");
}

TEST(OutputPairs, WhatTheModelDeclaresWins) {
  EXPECT_EQ(names(pairs(true, {{"mae", ""}, {"rmse", ""}, {"mae_deg", ""}})), "mse [rad^2];r2 [] higher;");
  EXPECT_TRUE(pairs(true, {{"mae", ""}, {"rmse", ""}, {"mse", ""}, {"r2", ""}}).empty());
}

TEST(OutputPairs, SeveralCarryTheirNamesAndOneMaskOrEachItsOwn) {
  std::vector<OutputInfo> outputs = {
      {"pose", "rad"},      {"valid", "", HR_MASK},        {"force", "N"},   {"pose_true", "", HR_TARGET},
      {"gate", "", HR_AUX}, {"force_true", "", HR_TARGET}, {"unmatched", ""}};
  const auto one_mask = pair_outputs("net", outputs, {});
  EXPECT_EQ(names(one_mask),
            "mse_pose [rad^2];mae_pose [rad];rmse_pose [rad];r2_pose [] higher;"
            "mse_force [N^2];mae_force [N];rmse_force [N];r2_force [] higher;");
  ASSERT_EQ(one_mask.size(), 2u);
  EXPECT_EQ(one_mask[1].prediction, 2u);
  EXPECT_EQ(one_mask[1].target, 5u);
  EXPECT_EQ(one_mask[0].mask, 1u);
  EXPECT_EQ(one_mask[1].mask, 1u);

  outputs.push_back({"force_valid", "", HR_MASK});
  EXPECT_EQ(pair_outputs("net", outputs, {})[1].mask, 7u);
  outputs.push_back({"third", "", HR_MASK});
  EXPECT_EQ(
      refusal([&] { pair_outputs("net", outputs, {}); }),
      "[net] the model declares 3 outputs with the role mask for 2 pairs of prediction and target: declare one for "
      "all, or one a pair");
}

TEST(OutputPairs, NeedATarget) {
  const std::vector<OutputInfo> outputs = {{"pose", ""}, {"valid", "", HR_MASK}, {"valid2", "", HR_MASK}};
  EXPECT_TRUE(pair_outputs("net", outputs, {}).empty());
  EXPECT_TRUE(OutputMetrics(pair_outputs("net", outputs, {})).empty());
}

}  // namespace
}  // namespace headroom
