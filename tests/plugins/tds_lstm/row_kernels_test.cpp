// Interpolation, loss and metrics of our own kernels in float32 against the same through LibTorch, which float64 takes.
#include <gtest/gtest.h>
#include <limits>

#include "interpolation.hpp"
#include "score.hpp"

namespace headroom {
namespace {

double largest_error(const at::Tensor& value, const at::Tensor& expected) {
  return (value.to(at::kDouble) - expected).abs().max().item<double>();
}

double number(const sdk::ZeroDim& value) { return value.tensor.defined() ? value.tensor.item<double>() : value.number; }

struct InterpolationCase {
  int64_t from, to;
};
class Interpolated : public testing::TestWithParam<InterpolationCase> {};

TEST_P(Interpolated, EqualsLibTorch) {
  const auto [from, to] = GetParam();
  torch::manual_seed(3);
  for (const Corners corners : {Corners::aligned, Corners::half_pixel}) {
    for (const bool by_step : {false, true}) {
      const at::Tensor x = torch::randn({2, from, 5}).requires_grad_(),
                       wide = x.detach().to(at::kDouble).requires_grad_(), above = torch::randn({2, to, 5});
      const at::Tensor y = interpolate_over_time(x, to, corners, by_step),
                       expected = interpolate_over_time(wide, to, corners, by_step);
      ASSERT_EQ(y.sizes(), expected.sizes());
      EXPECT_TRUE((by_step ? y.transpose(0, 1) : y).is_contiguous());
      EXPECT_LE(largest_error(y, expected), 2e-5);  // LibTorch's places in float64 differ by rounding of float32
      y.backward(above);
      expected.backward(above.to(at::kDouble));
      EXPECT_LE(largest_error(x.grad(), wide.grad()), 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Interpolated,
                         testing::Values(InterpolationCase{12, 416}, InterpolationCase{82, 12}, InterpolationCase{7, 7},
                                         InterpolationCase{1, 9}, InterpolationCase{9, 1}),
                         [](const auto& test) {
                           return std::to_string(test.param.from) + "to" + std::to_string(test.param.to);
                         });

// A view as the roll-out gives it: [steps, batch, joints], transposed.
TEST(Interpolation, TakesAViewByStep) {
  const at::Tensor by_step = torch::randn({6, 3, 4}), view = by_step.transpose(0, 1);
  const at::Tensor whole = interpolate_over_time(view.contiguous(), 20, Corners::half_pixel, false);
  EXPECT_TRUE(interpolate_over_time(view, 20, Corners::half_pixel, false).equal(whole));
}

// 3 windows of 40 samples and 20 joints. Gaps in the mask, one window that does not count at all, and no numbers where
// nothing counts.
struct ScoredWindows {
  at::Tensor prediction, target, mask;

  ScoredWindows() {
    torch::manual_seed(4);
    prediction = torch::randn({3, 40, 20});
    const at::Tensor angles = torch::randn({3, 45, 20});
    mask = torch::rand({3, 40}).gt(0.2);
    mask[1].fill_(false);
    target = angles.narrow(1, 5, 40);
    target.masked_fill_(mask.logical_not().unsqueeze(2), std::numeric_limits<float>::quiet_NaN());
  }
  Scored as(at::ScalarType type) const {
    return {prediction.to(type).detach().requires_grad_(), type == at::kFloat ? target : target.to(type), mask};
  }
};

TEST(Score, LossEqualsLibTorch) {
  const ScoredWindows windows;
  for (const LossWeights& weights : {LossWeights{1.0, 0.5}, LossWeights{0.0, 1.0}, LossWeights{2.0, 0.0}}) {
    const Scored narrow = windows.as(at::kFloat), wide = windows.as(at::kDouble);
    const LossSum loss = loss_of(narrow, weights), expected = loss_of(wide, weights);
    EXPECT_NEAR(loss.loss_sum.item<double>(), expected.loss_sum.item<double>(), 1e-3);
    EXPECT_EQ(loss.weight.item<double>(), expected.weight.item<double>());
    (3.0 * loss.loss_sum).backward();
    (3.0 * expected.loss_sum).backward();
    EXPECT_LE(largest_error(narrow.prediction.grad(), wide.prediction.grad()), 1e-5);
  }
}

// Zero error has no gradient of its absolute value, as torch.abs has it.
TEST(Score, NoErrorHasNoGradient) {
  const at::Tensor target = torch::randn({1, 2, 3}), prediction = target.clone().requires_grad_();
  loss_of({prediction, target, torch::ones({1, 2}, at::kBool)}, {1.0, 1.0}).loss_sum.backward();
  EXPECT_EQ(prediction.grad().abs().max().item<float>(), 0.0F);
}

TEST(Score, MetricsEqualLibTorch) {
  const ScoredWindows windows;
  Architecture architecture;
  architecture.joints = 20;
  architecture.unit = "rad";
  architecture.sample_rate_hz = 2000.0;
  const auto ours = metrics_of(windows.as(at::kFloat), architecture),
             theirs = metrics_of(windows.as(at::kDouble), architecture);
  const auto names = metric_list(architecture);
  ASSERT_EQ(ours.size(), names.size());
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const double expected = number(theirs[i].sum);
    EXPECT_NEAR(number(ours[i].sum), expected, 1e-5 * expected) << names[i].name;
    EXPECT_EQ(number(ours[i].weight), number(theirs[i].weight)) << names[i].name;
    EXPECT_GT(expected, 0.0) << names[i].name;
  }
}

}  // namespace
}  // namespace headroom
