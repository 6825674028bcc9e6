// Residual connections with their layer normalisation against LibTorch's in float64.
#include "residual_norm.hpp"

#include <gtest/gtest.h>

#include "against_libtorch.hpp"

namespace headroom {
namespace {

struct NormCase {
  int64_t batch, time, features;
  bool adds = true;
};

torch::nn::LayerNorm norm_of(const at::Tensor& weight, const at::Tensor& bias) {
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({weight.size(0)}));
  norm->weight = weight;
  norm->bias = bias;
  return norm;
}

class TdsResidualNorm : public testing::TestWithParam<NormCase> {};

// The residual is the end of longer samples, as behind a convolution.
TEST_P(TdsResidualNorm, EqualsLibTorch) {
  const NormCase& shape = GetParam();
  torch::manual_seed(1);
  const at::Tensor y = torch::randn({shape.batch, shape.time, shape.features}).mul(3).add(5),
                   x = torch::randn({shape.batch, shape.time + 4, shape.features}),
                   weight = torch::rand({shape.features}).add(0.5), bias = torch::randn({shape.features});
  const auto end_of = [&](const at::Tensor& all) { return all.narrow(1, 4, shape.time); };
  if (shape.adds) {
    expect_as_libtorch(
        {y, weight, bias, x},
        [&](const Tensors& of) { return residual_norm(of[0], end_of(of[3]), *norm_of(of[1], of[2])); },
        [&](const Tensors& of) { return norm_of(of[1], of[2])->forward(of[0] + end_of(of[3])); }, 2e-6, 2e-6);
  } else {
    expect_as_libtorch(
        {y, weight, bias}, [](const Tensors& of) { return residual_norm(of[0], std::nullopt, *norm_of(of[1], of[2])); },
        [](const Tensors& of) { return norm_of(of[1], of[2])->forward(of[0]); }, 2e-6, 2e-6);
  }
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
  const at::Tensor bias = torch::randn({16});
  const at::Tensor found =
      residual_norm(torch::full({2, 3, 16}, 7.0), torch::full({2, 3, 16}, -2.0), *norm_of(torch::rand({16}), bias));
  EXPECT_TRUE(found.equal(bias.expand({2, 3, 16})));
}

}  // namespace
}  // namespace headroom
