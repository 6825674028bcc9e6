// The time-depth-separable convolution of our own kernels against LibTorch's in float64.
#include <gtest/gtest.h>

#include "against_libtorch.hpp"
#include "tds_convolution.hpp"

namespace headroom {
namespace {

struct ConvolutionCase {
  int64_t batch, time, channels, width, kernel;
};

// As the reference has it: places are rows of a picture that is `time` wide.
at::Tensor by_libtorch(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t channels = weight.size(0), width = x.size(2) / channels;
  const at::Tensor planes = x.transpose(1, 2).reshape({x.size(0), channels, width, x.size(1)});
  const at::Tensor y = at::conv2d(planes, weight, bias);
  return y.reshape({x.size(0), x.size(2), y.size(3)}).transpose(1, 2);
}

class TdsConvolution : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(TdsConvolution, EqualsLibTorch) {
  const ConvolutionCase& shape = GetParam();
  torch::manual_seed(1);
  const int64_t features = shape.channels * shape.width;
  const at::Tensor x = torch::randn({shape.batch, shape.time, features}),
                   weight = torch::randn({shape.channels, shape.channels, 1, shape.kernel}),
                   bias = torch::randn({shape.channels});
  ASSERT_TRUE(has_tds_convolution(x, weight));
  expect_as_libtorch(
      {x, weight, bias}, [](const Tensors& of) { return tds_convolution(of[0], of[1], of[2]); },
      [](const Tensors& of) { return by_libtorch(of[0], of[1], of[2]); }, 1e-6, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TdsConvolution,
                         testing::Values(ConvolutionCase{3, 57, 8, 4, 21}, ConvolutionCase{2, 40, 8, 8, 11},
                                         ConvolutionCase{2, 20, 16, 16, 9}, ConvolutionCase{1, 9, 4, 32, 3},
                                         ConvolutionCase{5, 7, 2, 8, 7}, ConvolutionCase{2, 6, 1, 64, 1},
                                         ConvolutionCase{2, 11, 3, 8, 5}, ConvolutionCase{2, 11, 16, 2, 4},
                                         ConvolutionCase{2, 11, 24, 1, 3}),
                         [](const auto& test) {
                           const ConvolutionCase& shape = test.param;
                           return std::to_string(shape.channels) + "x" + std::to_string(shape.width) + "k" +
                                  std::to_string(shape.kernel);
                         });

TEST(TdsConvolutionShapes, OthersAreLibTorchs) {
  EXPECT_FALSE(has_tds_convolution(torch::zeros({1, 9, 15}), torch::zeros({3, 3, 1, 3})));
  EXPECT_FALSE(has_tds_convolution(torch::zeros({1, 9, 32}, at::kDouble), torch::zeros({8, 8, 1, 3}, at::kDouble)));
}

// A sequence that is not contiguous, as a residual's slice.
TEST(TdsConvolutionShapes, TakesViews) {
  const at::Tensor whole = torch::randn({2, 12, 32}), weight = torch::randn({8, 8, 1, 3}), bias = torch::randn({8});
  const at::Tensor view = whole.narrow(1, 2, 9);
  EXPECT_TRUE(tds_convolution(view, weight, bias).equal(tds_convolution(view.contiguous(), weight, bias)));
}

}  // namespace
}  // namespace headroom
