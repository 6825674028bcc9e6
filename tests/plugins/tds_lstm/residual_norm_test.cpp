// Residual connections with their layer normalisation against LibTorch's in float64.
#include "residual_norm.hpp"

#include <gtest/gtest.h>

#include "../models/relative_error.hpp"

namespace headroom {
namespace {

struct NormCase {
  int64_t batch, time, features;
  bool adds = true;
};

torch::nn::LayerNorm norm_over(int64_t count) {
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({count}));
  const torch::NoGradGuard no_grad;
  norm->weight.uniform_(0.5, 2.0);
  norm->bias.normal_();
  return norm;
}

class TdsResidualNorm : public testing::TestWithParam<NormCase> {};

// The residual is the end of longer samples, as behind a convolution.
TEST_P(TdsResidualNorm, EqualsLibTorch) {
  const NormCase& shape = GetParam();
  torch::manual_seed(1);
  torch::nn::LayerNorm norm = norm_over(shape.features), exact = norm_over(shape.features);
  exact->to(at::kDouble);
  const torch::NoGradGuard no_grad;
  exact->weight.copy_(norm->weight);
  exact->bias.copy_(norm->bias);
  const torch::AutoGradMode with_grad(true);
  const at::Tensor y = torch::randn({shape.batch, shape.time, shape.features}).mul(3).add(5).requires_grad_(),
                   x = torch::randn({shape.batch, shape.time + 4, shape.features}).requires_grad_();
  const at::Tensor y_exact = y.detach().to(at::kDouble).requires_grad_(),
                   x_exact = x.detach().to(at::kDouble).requires_grad_();
  const auto end_of = [&](const at::Tensor& all) { return all.narrow(1, 4, shape.time); };
  const at::Tensor found = residual_norm(y, shape.adds ? std::optional(end_of(x)) : std::nullopt, *norm),
                   expected = exact->forward(shape.adds ? y_exact + end_of(x_exact) : y_exact);
  EXPECT_LE(relative_error(found, expected), 2e-6);
  const at::Tensor above = torch::randn(found.sizes());
  found.backward(above);
  expected.backward(above.to(at::kDouble));
  EXPECT_LE(relative_error(y.grad(), y_exact.grad()), 2e-6);
  if (shape.adds) {
    EXPECT_LE(relative_error(x.grad(), x_exact.grad()), 2e-6);
  }
  EXPECT_LE(relative_error(norm->weight.grad(), exact->weight.grad()), 2e-6);
  EXPECT_LE(relative_error(norm->bias.grad(), exact->bias.grad()), 2e-6);
}

// With kernels of either width, and without any.
INSTANTIATE_TEST_SUITE_P(Shapes, TdsResidualNorm,
                         testing::Values(NormCase{4, 57, 32}, NormCase{2, 9, 256}, NormCase{3, 5, 24},
                                         NormCase{2, 3, 20}, NormCase{4, 57, 32, false}, NormCase{1, 1, 8, false}),
                         [](const auto& test) {
                           return std::to_string(test.param.batch) + "x" + std::to_string(test.param.time) + "x" +
                                  std::to_string(test.param.features) + (test.param.adds ? "" : "alone");
                         });

// Rows without any deviation are the bias, and no division by zero.
TEST(TdsResidualNorm, OfEqualFeatures) {
  torch::nn::LayerNorm norm = norm_over(16);
  const at::Tensor found = residual_norm(torch::full({2, 3, 16}, 7.0), torch::full({2, 3, 16}, -2.0), *norm);
  EXPECT_TRUE(found.equal(norm->bias.expand({2, 3, 16})));
}

}  // namespace
}  // namespace headroom
