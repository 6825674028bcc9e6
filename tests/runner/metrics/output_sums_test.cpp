// What is added up: however it is divided, and as it comes back from a checkpoint.
#include <gmock/gmock.h>

#include "textbook.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using Keep = OutputMetrics::Keep;

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

}  // namespace
}  // namespace headroom
