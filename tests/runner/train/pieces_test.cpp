#include "train/pieces.hpp"

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

TEST(ClipGradients, OfNothingIsZero) { EXPECT_EQ(clip_gradients({}, {.norm = 1.0}), 0.0); }

}  // namespace
}  // namespace headroom
