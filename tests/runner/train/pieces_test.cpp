#include "train/pieces.hpp"

#include <ATen/Parallel.h>
#include <cmath>
#include <gtest/gtest.h>

#include "twins.hpp"

namespace headroom {
namespace {

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> list;
  for (const at::Tensor& tensor : tensors) list.push_back(tensor.grad());
  return list;
}

TEST(ClipGradients, DoesWhatLibTorchDoes) {
  for (const double max_norm : {0.5, 3.0, 1e6}) {
    Twins twins;
    twins.give_gradients();
    const double norm = clip_gradients(gradients_of(twins.ours), {.norm = max_norm});
    const double reference = torch::nn::utils::clip_grad_norm_(twins.theirs, max_norm);
    EXPECT_NEAR(norm, reference, 1e-5 * reference);
    for (size_t i = 0; i < twins.ours.size(); ++i) {
      EXPECT_LT((twins.ours[i].grad() - twins.theirs[i].grad()).abs().max().item<double>(), 1e-6)
          << "max_norm " << max_norm;
    }
  }
}

TEST(ClipGradients, ByValueDoesWhatLibTorchDoesAndTellsTheNormBefore) {
  Twins twins;
  twins.give_gradients();
  const double before = clip_gradients(gradients_of(twins.theirs), {});
  EXPECT_EQ(clip_gradients(gradients_of(twins.ours), {.value = 0.25}), before);
  torch::nn::utils::clip_grad_value_(twins.theirs, 0.25);
  for (size_t i = 0; i < twins.ours.size(); ++i) EXPECT_TRUE(twins.ours[i].grad().equal(twins.theirs[i].grad()));
}

TEST(ClipGradients, ByValueComesBeforeByNorm) {
  Twins twins;
  twins.give_gradients();
  clip_gradients(gradients_of(twins.ours), {.value = 0.25, .norm = 0.5});
  torch::nn::utils::clip_grad_value_(twins.theirs, 0.25);
  torch::nn::utils::clip_grad_norm_(twins.theirs, 0.5);
  for (size_t i = 0; i < twins.ours.size(); ++i)
    EXPECT_LT((twins.ours[i].grad() - twins.theirs[i].grad()).abs().max().item<double>(), 1e-6);
}

TEST(ClipGradients, ZeroOnlyMeasures) {
  Twins twins;
  twins.give_gradients();
  EXPECT_GT(clip_gradients(gradients_of(twins.ours), {}), 1.0);
  for (size_t i = 0; i < twins.ours.size(); ++i) EXPECT_TRUE(twins.ours[i].grad().equal(twins.theirs[i].grad()));
}

// By value, an infinity would become a number.
TEST(ClipGradients, OneValueThatIsNotFiniteShowsAndClipsNothing) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Twins twins;
    twins.give_gradients();
    at::NoGradGuard no_grad;
    twins.ours[1].mutable_grad()[2] = bad;
    EXPECT_FALSE(std::isfinite(clip_gradients(gradients_of(twins.ours), {.value = 0.1, .norm = 0.5})));
    EXPECT_TRUE(twins.ours[0].grad().equal(twins.theirs[0].grad()));
  }
}

TEST(ClipGradients, MeasuresInFloat64) {
  const std::vector<at::Tensor> gradients = {at::full({2}, 1e30)};  // its square is not finite in float32
  EXPECT_NEAR(clip_gradients(gradients, {}), std::sqrt(2.0) * 1e30, 1e24);
}

// More than one thread takes at once, an odd rest, a layout that is not the plain one, and one that is not dense.
TEST(ClipGradients, MeasuresTensorsOfAnySizeTypeAndLayout) {
  const at::Tensor large = at::randn({3, 123457}), wide = at::randn({41, 57}, at::kDouble);
  const std::vector<at::Tensor> gradients = {
      large, large.t(), wide.t(), wide.slice(1, 0, 57, 2), at::randn({77}).to(at::kBFloat16), at::randn({})};
  double squares = 0.0;
  for (const at::Tensor& gradient : gradients) squares += gradient.to(at::kDouble).square().sum().item<double>();
  const double norm = clip_gradients(gradients, {});
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-12 * norm);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  EXPECT_EQ(clip_gradients(gradients, {}), norm);
  at::set_num_threads(threads);
}

// One pass over memory, against LibTorch's division and the norm of its result.
TEST(DivideGradients, GivesTheBitsOfTwoPasses) {
  const at::Tensor large = at::randn({3, 123457});
  const auto make = [&] {
    return std::vector<at::Tensor>{large.clone(),
                                   large.t().clone(),
                                   at::empty({41, 9}).t().copy_(large.view(-1).narrow(0, 7, 369).view({9, 41})),
                                   large.narrow(1, 0, 57).to(at::kDouble),
                                   large.clone().slice(1, 0, 123457, 2),
                                   large.narrow(1, 3, 77).to(at::kBFloat16),
                                   large[0][0].clone()};
  };
  for (const double divisor : {1.0, 48.0, 1234567.0, 1.0 / 3.0, 65536.0 * 7.0}) {
    const std::vector<at::Tensor> ours = make(), theirs = make();
    at::_foreach_div_(theirs, divisor);
    const double expected = clip_gradients(theirs, {});
    EXPECT_EQ(divide_gradients(ours, divisor), expected) << divisor;
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i].equal(theirs[i])) << i << " by " << divisor;
    EXPECT_EQ(clip_gradients(ours, {.norm = 0.5}, expected), expected);
    clip_gradients(theirs, {.norm = 0.5});
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i].equal(theirs[i])) << i << " by " << divisor;
  }
}

TEST(DivideGradients, ShowsWhatIsNotFinite) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const std::vector<at::Tensor> gradients = {at::ones({100}), at::full({3}, bad)};
    EXPECT_FALSE(std::isfinite(divide_gradients(gradients, 4.0)));
  }
  EXPECT_EQ(divide_gradients({}, 4.0), 0.0);
}

TEST(ClipGradients, OfNothingIsZero) { EXPECT_EQ(clip_gradients({}, {.norm = 1.0}), 0.0); }

}  // namespace
}  // namespace headroom
