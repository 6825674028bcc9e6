// Winograd's convolution against LibTorch's in float64: values, and both gradients.
#include "winograd.hpp"

#include <gtest/gtest.h>
#include <ostream>

#include "winograd_kernel.hpp"

namespace headroom {
namespace {

struct Images {
  int64_t images, in, out, height, width;
  friend std::ostream& operator<<(std::ostream& out, const Images& i) {
    return out << i.images << " x " << i.in << " x " << i.height << " x " << i.width << " to " << i.out;
  }
};

class Winograd : public testing::TestWithParam<Images> {};

double error_of(const at::Tensor& value, const at::Tensor& expected) {
  return ((value - expected).abs().max() / expected.abs().max()).item<double>();
}

TEST_P(Winograd, IsTheConvolution) {
  const auto& [images, in, out, height, width] = GetParam();
  if (!has_winograd(in, out)) GTEST_SKIP() << "no kernel for these channels on this processor";
  torch::manual_seed(3);
  const auto channels_last = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = torch::randn({images, in, height, width}).contiguous(channels_last).requires_grad_(),
                   weight = torch::randn({out, in, 3, 3}).requires_grad_();
  const at::Tensor exact_x = x.detach().to(at::kDouble).requires_grad_(),
                   exact_weight = weight.detach().to(at::kDouble).requires_grad_();
  const at::Tensor y = convolve_winograd(x, weight), expected = at::conv2d(exact_x, exact_weight, {}, 1, 1);
  EXPECT_TRUE(y.is_contiguous(channels_last));
  EXPECT_LE(error_of(y, expected), 3e-6);
  const at::Tensor above = torch::randn(y.sizes());
  y.backward(above);
  expected.backward(above.to(at::kDouble));
  EXPECT_LE(error_of(x.grad(), exact_x.grad()), 3e-6);
  EXPECT_LE(error_of(weight.grad(), exact_weight.grad()), 3e-6);
}

// An image's result does not depend on which others stand beside it, or on how many threads there are.
TEST_P(Winograd, OfAnImageIsTheSameAmongOthers) {
  const auto& [images, in, out, height, width] = GetParam();
  if (!has_winograd(in, out)) GTEST_SKIP() << "no kernel for these channels on this processor";
  torch::manual_seed(4);
  const at::NoGradGuard no_grad;
  const auto channels_last = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = torch::randn({images, in, height, width}).contiguous(channels_last),
                   weight = torch::randn({out, in, 3, 3}), all = convolve_winograd(x, weight);
  const int threads = at::get_num_threads();
  for (int64_t i = 0; i < images; ++i) {
    at::set_num_threads(i % 2 == 0 ? 1 : 3);
    const at::Tensor alone = convolve_winograd(x.narrow(0, i, 1).contiguous(channels_last), weight);
    EXPECT_TRUE(alone.equal(all.narrow(0, i, 1))) << i;
  }
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Winograd,
                         testing::Values(Images{2, 64, 64, 30, 40}, Images{3, 32, 96, 15, 20}, Images{1, 96, 32, 7, 5},
                                         Images{5, 256, 32, 1, 1}, Images{2, 32, 32, 1, 9}, Images{2, 512, 64, 4, 5},
                                         Images{3, 64, 64, 33, 2}));

}  // namespace
}  // namespace headroom
