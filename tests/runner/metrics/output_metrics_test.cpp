// The host's metrics, online and in full, of all that a model may give.
#include "textbook.hpp"

namespace headroom {
namespace {

using Keep = OutputMetrics::Keep;

class OutputMetricsTest : public testing::TestWithParam<Keep> {
 protected:
  void SetUp() override { torch::manual_seed(5); }
  void expect_textbook(const std::vector<std::vector<at::Tensor>>& micro_batches, double limit = 1e-12) {
    expect_equal(measure(micro_batches, GetParam()), textbook(micro_batches), limit);
  }
};

TEST_P(OutputMetricsTest, OfEveryShape) {
  expect_textbook({outputs_of({9}), outputs_of({4}), outputs_of({1})});
  expect_textbook({outputs_of({9, 1}), outputs_of({4, 1})});
  expect_textbook({outputs_of({9, 5}), outputs_of({4, 5})});
  expect_textbook({outputs_of({9, 5, 3}), outputs_of({2, 5, 3}), outputs_of({1, 5, 3})});
  expect_textbook({outputs_of({3, 2, 4, 3}, at::kDouble), outputs_of({1, 2, 4, 3}, at::kDouble)});
  expect_textbook({outputs_of({6, 5, 3}, at::kBFloat16)});
  expect_textbook({outputs_of({6, 7, 3}), outputs_of({6, 4, 3})});  // as sequences grow and shrink
}

TEST_P(OutputMetricsTest, OfAnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 21; ++channels) {
    expect_textbook({outputs_of({6, 5, channels}), outputs_of({2, 5, channels})});
    expect_textbook({with_mask(outputs_of({6, 5, channels}), {6, 5})});
    expect_textbook({with_mask(outputs_of({6, 5, channels}), {6, 5, channels})});
  }
}

TEST_P(OutputMetricsTest, OfTensorsThatAreViews) {
  auto outputs = outputs_of({6, 3, 5});
  for (at::Tensor& output : outputs) output = output.transpose(1, 2).narrow(1, 1, 3);
  expect_textbook({outputs, outputs_of({2, 3, 3})});
}

TEST_P(OutputMetricsTest, MasksBroadcastOverTrailingAxes) {
  for (const std::vector<int64_t>& mask :
       std::vector<std::vector<int64_t>>{{6}, {6, 1}, {6, 5}, {1, 5}, {6, 5, 1}, {6, 5, 3}, {1, 1, 3}, {6, 1, 3}}) {
    expect_textbook({with_mask(outputs_of({6, 5, 3}), mask), with_mask(outputs_of({6, 5, 3}), mask)});
  }
  expect_textbook({with_mask(outputs_of({6}), {6}), with_mask(outputs_of({1}), {1})});
  expect_textbook({with_mask(outputs_of({6, 5}), {6}, at::kFloat), with_mask(outputs_of({3, 5}), {3}, at::kByte)});
}

TEST_P(OutputMetricsTest, WhatIsMaskedMayBeAnything) {
  auto outputs = with_mask(outputs_of({6, 5, 3}), {6, 5});
  const Expected expected = textbook({outputs});
  const at::Tensor masked = outputs[2].logical_not().unsqueeze(-1);
  outputs[0] = outputs[0].masked_fill(masked, INFINITY);
  outputs[1] = outputs[1].masked_fill(masked, NAN);
  expect_equal(measure({outputs}, GetParam()), expected);
}

TEST_P(OutputMetricsTest, EmptyMasksChangeNothing) {
  auto some = with_mask(outputs_of({6, 5, 3}), {6, 5}), none = with_mask(outputs_of({4, 5, 3}), {4, 5});
  none[2].zero_();
  expect_textbook({none, some, none});
  EXPECT_TRUE(measure({none, none}, GetParam()).values.empty());
  EXPECT_TRUE(measure({none, none}, GetParam()).channels.empty());
  auto channel = with_mask(outputs_of({4, 5, 3}), {4, 5, 3});
  channel[2].select(2, 1).zero_();
  expect_textbook({channel, channel});
}

TEST_P(OutputMetricsTest, NoSamplesChangeNothing) {
  expect_textbook({outputs_of({0, 5, 3}), outputs_of({3, 5, 3})});
  EXPECT_TRUE(measure({outputs_of({0, 5, 3})}, GetParam()).values.empty());
}

TEST_P(OutputMetricsTest, ChannelsWithConstantTargetsHaveNoR2) {
  std::vector<std::vector<at::Tensor>> micro_batches;
  for (const int64_t count : {7, 1, 3, 5}) {
    micro_batches.push_back(with_mask(outputs_of({count, 5, 3}), {count, 5}));
    micro_batches.back()[1].select(2, 1).fill_(0.1);  // not exact in binary: sums of it round
  }
  expect_textbook(micro_batches);
  EXPECT_TRUE(measure(micro_batches, GetParam()).channels.at("val/r2")[1].is_null());
  for (auto& outputs : micro_batches) outputs[1].fill_(-0.3);
  expect_textbook(micro_batches);
  EXPECT_EQ(measure(micro_batches, GetParam()).values.size(), 3u);
}

TEST_P(OutputMetricsTest, AChannelThatJumpsBetweenMicroBatchesIsNotConstant) {
  auto first = outputs_of({4, 2}), second = outputs_of({3, 2});
  first[1].fill_(1.0);
  second[1].fill_(2.0);
  expect_textbook({first, second});
}

TEST_P(OutputMetricsTest, SmallChangesOfLargeTargetsAreNotLost) {
  std::vector<std::vector<at::Tensor>> micro_batches;
  for (int i = 0; i < 20; ++i) {
    micro_batches.push_back(outputs_of({50, 2}, at::kDouble));
    for (at::Tensor& output : micro_batches.back()) output = output + 1e6;
  }
  expect_textbook(micro_batches, 1e-8);
}

TEST_P(OutputMetricsTest, MoreThanOnePieceOfAMicroBatch) {
  const auto outputs = with_mask(outputs_of({3, 100'000, 4}), {3, 100'000});
  const Measured whole = measure({outputs}, GetParam());
  const at::Tensor valid = outputs[2].unsqueeze(-1).expand_as(outputs[0]);
  const at::Tensor error = (outputs[0].to(at::kDouble) - outputs[1].to(at::kDouble)).masked_select(valid);
  const at::Tensor target = outputs[1].to(at::kDouble).masked_select(valid).reshape({-1, 4});
  const at::Tensor r2 = 1.0 - error.square().reshape({-1, 4}).sum(0) / (target - target.mean(0)).square().sum(0);
  ASSERT_EQ(whole.values.size(), 4u);
  EXPECT_NEAR(whole.values[0].second, error.square().mean().item<double>(), 1e-12);
  EXPECT_NEAR(whole.values[1].second, error.abs().mean().item<double>(), 1e-12);
  EXPECT_NEAR(whole.values[3].second, r2.mean().item<double>(), 1e-12);
}

TEST_P(OutputMetricsTest, ForgetsAndBeginsAnew) {
  OutputMetrics metrics(pairs(false), GetParam());
  metrics.add(outputs_of({6, 3}));
  metrics.zero();
  EXPECT_TRUE(metrics.measured("val").values.empty());
  const auto outputs = outputs_of({4, 3});
  metrics.add(outputs);
  expect_equal(metrics.measured("val"), textbook({outputs}));
}

TEST_P(OutputMetricsTest, KeepsNothingOfTheOutputsItWasGiven) {
  auto outputs = with_mask(outputs_of({6, 3}), {6});
  const Expected expected = textbook({outputs});
  OutputMetrics metrics(pairs(true), GetParam());
  metrics.add(outputs);
  for (at::Tensor& output : outputs) output.zero_();  // as the next batch does with its slot
  expect_equal(metrics.measured("val"), expected);
}

INSTANTIATE_TEST_SUITE_P(Modes, OutputMetricsTest, testing::Values(Keep::sums, Keep::outputs),
                         [](const auto& test) { return std::string(test.param == Keep::sums ? "Online" : "Full"); });

}  // namespace
}  // namespace headroom
