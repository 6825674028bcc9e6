// The host's metrics against the textbook's formulas over everything concatenated, in long double.

#include <c10/core/CPUAllocator.h>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "error.hpp"
#include "memory/tensor_allocator.hpp"
#include "metrics/metrics.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using Keep = OutputMetrics::Keep;

const std::vector<OutputInfo> kOutputs = {{"pose", "rad"}, {"truth", "", HR_TARGET}, {"valid", "", HR_MASK}};

std::vector<OutputPair> pairs(bool masked, const std::vector<MetricInfo>& declared = {}) {
  return pair_outputs("net", std::span(kOutputs).first(masked ? 3 : 2), declared);
}

// What the metrics should be: a value each, and one a channel.
struct Expected {
  std::map<std::string, double> values;
  std::map<std::string, std::vector<double>> channels;
};

using Number = long double;

// `micro_batches` in the order of the model's outputs; every tensor of one as wide as its prediction.
Expected textbook(const std::vector<std::vector<at::Tensor>>& micro_batches) {
  const at::Tensor& first = micro_batches.front()[0];
  const int64_t channels = first.dim() > 1 ? first.size(-1) : 1;
  std::vector<std::vector<std::pair<Number, Number>>> elements(channels);  // (prediction, target) of what is valid
  for (const auto& outputs : micro_batches) {
    at::Tensor mask = outputs.size() > 2 ? outputs[2].to(at::kDouble) : at::ones_like(outputs[0]).to(at::kDouble);
    while (mask.dim() < outputs[0].dim()) mask = mask.unsqueeze(-1);
    const auto flat = [](const at::Tensor& tensor) { return tensor.to(at::kDouble).contiguous().flatten(); };
    const at::Tensor p = flat(outputs[0]), t = flat(outputs[1]), m = flat(mask.expand_as(outputs[0]));
    for (int64_t i = 0; i < p.numel(); ++i) {
      if (m[i].item<double>() != 0.0) elements[i % channels].emplace_back(p[i].item<double>(), t[i].item<double>());
    }
  }
  Expected expected;
  Number n = 0, squared = 0, absolute = 0, r2_sum = 0, with_r2 = 0;
  for (const auto& channel : elements) {
    Number mean = 0, variation = 0, channel_squared = 0, channel_absolute = 0;
    for (const auto& [p, t] : channel) mean += t / channel.size();
    bool constant = true;
    for (const auto& [p, t] : channel) {
      constant = constant && t == channel.front().second;
      variation += (t - mean) * (t - mean);
      channel_squared += (p - t) * (p - t);
      channel_absolute += std::abs(p - t);
    }
    const Number r2 = constant ? NAN : 1 - channel_squared / variation, count = channel.size();
    expected.channels["val/mse"].push_back(channel_squared / count);
    expected.channels["val/mae"].push_back(channel_absolute / count);
    expected.channels["val/rmse"].push_back(std::sqrt(channel_squared / count));
    expected.channels["val/r2"].push_back(r2);
    n += count, squared += channel_squared, absolute += channel_absolute;
    if (!constant) r2_sum += r2, ++with_r2;
  }
  if (n > 0) {
    expected.values = {{"val/mse", squared / n}, {"val/mae", absolute / n}, {"val/rmse", std::sqrt(squared / n)}};
  }
  if (with_r2 > 0) expected.values["val/r2"] = r2_sum / with_r2;
  if (channels == 1) expected.channels.clear();
  return expected;
}

void expect_equal(const Measured& measured, const Expected& expected, double limit = 1e-12) {
  ASSERT_EQ(measured.values.size(), expected.values.size());
  for (const auto& [name, value] : measured.values) {
    ASSERT_TRUE(expected.values.contains(name)) << name;
    EXPECT_NEAR(value, expected.values.at(name), limit * std::max(1.0, std::abs(value))) << name;
  }
  EXPECT_EQ(measured.channels.size(), expected.values.empty()     ? 0
                                      : measured.channels.empty() ? 0
                                                                  : expected.values.size());
  for (const auto& [name, values] : measured.channels.items()) {
    const std::vector<double>& wanted = expected.channels.at(name);
    ASSERT_EQ(values.size(), wanted.size()) << name;
    for (size_t c = 0; c < wanted.size(); ++c) {
      if (!std::isfinite(wanted[c])) {
        EXPECT_TRUE(values[c].is_null()) << name << ' ' << c;
      } else {
        EXPECT_NEAR(values[c].get<double>(), wanted[c], limit * std::max(1.0, std::abs(wanted[c]))) << name << ' ' << c;
      }
    }
  }
}

Measured measure(const std::vector<std::vector<at::Tensor>>& micro_batches, Keep keep = Keep::sums) {
  OutputMetrics metrics(pairs(micro_batches.front().size() > 2), keep);
  for (const auto& outputs : micro_batches) metrics.add(outputs);
  return metrics.measured("val");
}

// Targets that differ from channel to channel, predictions near them.
std::vector<at::Tensor> outputs_of(std::vector<int64_t> shape, at::ScalarType dtype = at::kFloat) {
  const at::Tensor scale = shape.size() > 1 ? torch::linspace(0.5, 3.0, shape.back()) : torch::ones({});
  const at::Tensor target = (torch::randn(shape) + 2.0) * scale;
  return {(target + 0.3 * torch::randn(shape)).to(dtype), target.to(dtype)};
}

std::vector<at::Tensor> with_mask(std::vector<at::Tensor> outputs, const std::vector<int64_t>& shape,
                                  at::ScalarType dtype = at::kBool) {
  outputs.push_back(torch::rand(shape).gt(0.4).to(dtype));
  return outputs;
}

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

// However 40 samples are cut into windows and micro-batches.
TEST(OutputSums, AnySplitGivesTheSame) {
  torch::manual_seed(7);
  const auto whole = with_mask(outputs_of({40, 5, 3}), {40, 5});
  const Expected expected = textbook({whole});
  for (const std::vector<int64_t>& lengths : std::vector<std::vector<int64_t>>{
           {40}, {1, 39}, {13, 13, 13, 1}, {8, 8, 8, 8, 8}, std::vector<int64_t>(40, 1)}) {
    OutputMetrics epoch(pairs(true)), window(pairs(true));
    int64_t first = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::vector<at::Tensor> part;
      for (const at::Tensor& output : whole) part.push_back(output.narrow(0, first, lengths[i]));
      window.add(part);
      first += lengths[i];
      if (i % 3 != 2 && i + 1 < lengths.size()) continue;
      epoch.add(window);
      window.zero();
    }
    expect_equal(epoch.measured("val"), expected);
  }
}

TEST(OutputSums, FullEqualsOnline) {
  torch::manual_seed(8);
  std::vector<std::vector<at::Tensor>> micro_batches;
  for (int i = 0; i < 30; ++i) micro_batches.push_back(with_mask(outputs_of({1 + i % 5, 6, 4}), {1 + i % 5, 6}));
  const Measured online = measure(micro_batches, Keep::sums), full = measure(micro_batches, Keep::outputs);
  ASSERT_EQ(online.values.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(online.values[i].first, full.values[i].first);
    EXPECT_NEAR(online.values[i].second, full.values[i].second, 1e-13 * std::abs(full.values[i].second));
  }
}

TEST(OutputSums, AWindowIsAddedOnceInFullToo) {
  OutputMetrics epoch(pairs(false), Keep::outputs), window(pairs(false), Keep::outputs);
  const auto first = outputs_of({4, 3}), second = outputs_of({2, 3});
  window.add(first);
  epoch.add(window);
  window.zero();
  window.add(second);
  epoch.add(window);
  expect_equal(epoch.measured("val"), textbook({first, second}));
}

TEST(OutputSums, TakeTheSameMemoryWhateverIsAdded) {
  OutputMetrics metrics(pairs(false));
  metrics.add(outputs_of({6, 3}));
  const at::Tensor sums = metrics.state().front().second;
  for (int i = 0; i < 50; ++i) metrics.add(outputs_of({6, 3}));
  EXPECT_TRUE(metrics.state().front().second.is_same(sums));
  EXPECT_EQ(sums.nbytes(), 5u * 3u * sizeof(double));
}

// Counts what tensors ask for while it lives.
class CountingAllocator : public c10::Allocator {
 public:
  CountingAllocator() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 100); }
  ~CountingAllocator() override { c10::SetCPUAllocator(before_, 100); }
  c10::DataPtr allocate(size_t bytes) override {
    ++count;
    return before_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return before_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  int count = 0;

 private:
  c10::Allocator* before_;
};

TEST(OutputSums, CommittingAWindowAllocatesNoTensor) {
  StepSums epoch(0, at::kCPU, OutputMetrics(pairs(true))), window(0, at::kCPU, OutputMetrics(pairs(true)));
  const StepResult result{at::ones({}), at::ones({}, at::kDouble), with_mask(outputs_of({4, 3}), {4}), {}};
  window.add(result);
  epoch.add(window);
  const CountingAllocator counting;
  epoch.add(window);
  EXPECT_EQ(counting.count, 0);
  window.add(result);
  EXPECT_GT(counting.count, 0);
}

// Refuses the n-th tensor from now.
class FailingAllocator : public CountingAllocator {
 public:
  explicit FailingAllocator(int which) : which_(which) {}
  c10::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK_WITH(OutOfMemoryError, count != which_, "refused");
    return CountingAllocator::allocate(bytes);
  }

 private:
  int which_;
};

TEST(OutputSums, AMicroBatchThatRunsOutOfMemoryLeavesNoTrace) {
  for (const Keep keep : {Keep::sums, Keep::outputs}) {
    torch::manual_seed(9);
    const StepResult first{at::full({}, 3.0), at::ones({}, at::kDouble), with_mask(outputs_of({4, 3}), {4}), {}};
    const StepResult second{at::full({}, 5.0), at::ones({}, at::kDouble), with_mask(outputs_of({4, 3}), {4}), {}};
    StepSums undisturbed(0, at::kCPU, OutputMetrics(pairs(true), keep));
    undisturbed.add(first);
    undisturbed.add(second);
    int failed = 0;
    for (bool done = false; !done; ++failed) {
      StepSums sums(0, at::kCPU, OutputMetrics(pairs(true), keep));
      sums.add(first);
      try {
        const FailingAllocator failing(failed);
        sums.add(second);
        done = true;
      } catch (const c10::OutOfMemoryError&) {
        sums.add(second);
      }
      EXPECT_EQ(sums.measured("val", {}).values, undisturbed.measured("val", {}).values) << failed;
    }
    EXPECT_GT(failed, 3);
  }
}

TEST(OutputSums, ComeBackFromACheckpointToTheBit) {
  torch::manual_seed(10);
  OutputMetrics undisturbed(pairs(false)), resumed(pairs(false));
  undisturbed.add(outputs_of({4, 3}));
  const auto [name, saved] = undisturbed.state().front();
  EXPECT_EQ(name, "pose");
  const at::Tensor copy = saved.clone();
  resumed.add(outputs_of({2, 3}));  // what was there before goes
  resumed.restore([&](const std::string& wanted) { return wanted == "pose" ? copy : at::Tensor(); });
  const auto more = outputs_of({5, 3});
  undisturbed.add(more);
  resumed.add(more);
  EXPECT_TRUE(resumed.state().front().second.equal(saved));
  resumed.restore([](const std::string&) { return at::Tensor(); });
  EXPECT_TRUE(resumed.measured("val").values.empty());
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_TRUE(error.exit_code() == Exit::plugin || error.exit_code() == Exit::bad_input);
    return error.what();
  }
  return "accepted";
}

TEST(OutputSums, ShapesThatDoNotSuitAreRefused) {
  OutputMetrics metrics(pairs(true));
  const auto add = [&](std::vector<int64_t> prediction, std::vector<int64_t> target, std::vector<int64_t> mask) {
    return refusal([&] { metrics.add(std::vector{at::zeros(prediction), at::zeros(target), at::ones(mask)}); });
  };
  EXPECT_EQ(add({4, 3}, {4, 3}, {4}), "accepted");
  EXPECT_EQ(add({4, 3}, {4}, {4}),
            "[net] the output 'pose' has shape [4, 3] and its target 'truth' [4]: they must be equal; declare a target "
            "of another kind with the role aux");
  EXPECT_EQ(
      add({4, 3}, {4, 3}, {3}),
      "[net] the mask of the output 'pose' has shape [3], the output [4, 3]: a mask has the output's leading axes, "
      "or 1 in their place");
  EXPECT_THAT(add({4, 3}, {4, 3}, {4, 3, 1}), HasSubstr("the mask of the output 'pose' has shape [4, 3, 1]"));
  EXPECT_EQ(add({4, 2}, {4, 2}, {4}),
            "[net] the last axis of the output 'pose' was 3, is 2: it holds the channels and must not change");
  EXPECT_THAT(refusal([&] { metrics.restore([](const std::string&) { return at::zeros({5}, at::kDouble); }); }),
              HasSubstr("what it holds of the output 'pose' is not float64 of shape [5, channels]"));
}

TEST(OutputSums, ManyChannelsAreNotListed) {
  EXPECT_EQ(measure({outputs_of({2, most_channels_listed})}).channels.size(), 4u);
  EXPECT_TRUE(measure({outputs_of({2, most_channels_listed + 1})}).channels.empty());
  EXPECT_EQ(measure({outputs_of({2, most_channels_listed + 1})}).values.size(), 4u);
}

TEST(OutputSums, OnlyResultsThatCarryOutputsCount) {
  StepSums sums(0, at::kCPU, OutputMetrics(pairs(false)));
  const auto outputs = outputs_of({4, 3});
  sums.add({at::full({}, 2.0), at::ones({}, at::kDouble), outputs, {}});
  sums.add({at::full({}, 4.0), at::ones({}, at::kDouble), {}, {}});
  const Measured measured = sums.measured("val", {});
  EXPECT_EQ(measured.values.front(), (std::pair<std::string, double>("val/loss", 3.0)));
  Measured rest = measured;
  rest.values.erase(rest.values.begin());
  expect_equal(rest, textbook({outputs}));
}

TEST(OutputSums, SumsOfTheLossAloneLeaveTheHostsMetricsOut) {
  StepSums window(0, at::kCPU, OutputMetrics(pairs(false))), interval(0, at::kCPU);
  window.add({at::full({}, 2.0), at::ones({}, at::kDouble), outputs_of({4, 3}), {}});
  interval.add(window);
  EXPECT_EQ(interval.measured("val", {}).values.size(), 1u);
}

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

// Two pairs, so that memory can run out between them.
StepSums two_pairs() {
  return {
      0, at::kCPU,
      OutputMetrics(pair_outputs(
          "net",
          std::vector<OutputInfo>{{"pose", "rad"}, {"truth", "", HR_TARGET}, {"grip", "N"}, {"force", "", HR_TARGET}},
          {}))};
}

TEST(OutputMetrics, SumsTakeAllOfOtherSumsOrNothing) {
  install_tensor_allocator();
  StepSums window = two_pairs();
  const auto values = [] { return torch::randn({5, 3}); };
  window.add(StepResult{at::ones({}),
                        at::ones({}, at::kDouble),
                        {values(), values(), values(), values()},
                        at::zeros({0, 2}, at::kDouble)});
  int64_t failures = 0;
  for (bool fits = false; !fits; ++failures) {
    StepSums epoch = two_pairs();
    fail_tensor_allocation(failures);
    try {
      epoch.add(window);
      fits = true;
    } catch (const c10::OutOfMemoryError&) {
      epoch.add(window);
    }
    fail_tensor_allocation(-1);
    const auto ours = epoch.outputs().state(), theirs = window.outputs().state();
    ASSERT_EQ(ours.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(ours[i].second.equal(theirs[i].second)) << ours[i].first << ", allocation " << failures;
    }
  }
  EXPECT_GT(failures, 3) << "each pair allocates";
}

}  // namespace
}  // namespace headroom
