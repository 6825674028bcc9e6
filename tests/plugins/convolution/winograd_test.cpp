// Winograd's convolution against LibTorch's in float64: values and gradients.
#include "convolution/winograd.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <ostream>

#include "convolution/winograd_kernel.hpp"

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

Epilogue no_epilogue(int64_t channels) { return {{}, at::zeros({channels}), {}, false}; }

// Values and all gradients: of the shift too, and of the residual where there is one.
void expect_as_in_double(const Images& shape, bool relu, bool adds) {
  const auto& [images, in, out, height, width] = shape;
  torch::manual_seed(3);
  const auto channels_last = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = torch::randn({images, in, height, width}).contiguous(channels_last).requires_grad_(),
                   weight = torch::randn({out, in, 3, 3}).requires_grad_(),
                   residual = torch::randn({images, out, height, width}).requires_grad_();
  Epilogue epilogue = no_epilogue(out);
  if (relu || adds) epilogue = {torch::randn({out}), torch::randn({out}) * 10, adds ? residual : at::Tensor(), relu};
  epilogue.shift.requires_grad_();
  const auto exactly = [](const at::Tensor& given) { return given.detach().to(at::kDouble).requires_grad_(); };
  const at::Tensor exact_x = exactly(x), exact_weight = exactly(weight), exact_residual = exactly(residual),
                   exact_shift = exactly(epilogue.shift);
  const at::Tensor y = convolve_winograd(x, weight, epilogue);
  const at::Tensor scale = epilogue.scale.defined() ? epilogue.scale : at::ones({out});
  at::Tensor expected = at::conv2d(exact_x, exact_weight, {}, 1, 1) * scale.to(at::kDouble).view({-1, 1, 1}) +
                        exact_shift.view({-1, 1, 1});
  if (adds) expected = expected + exact_residual;
  // Where rounding decides, the gradients may differ.
  at::Tensor above = torch::randn(y.sizes());
  if (relu) above = above * (expected.abs() > 2e-5 * expected.abs().max());
  if (relu) expected = expected.relu();
  constexpr double limit = 3e-6;
  EXPECT_TRUE(y.is_contiguous(channels_last));
  EXPECT_LE(error_of(y, expected), limit);
  y.backward(above);
  expected.backward(above.to(at::kDouble));
  EXPECT_LE(error_of(x.grad(), exact_x.grad()), limit);
  EXPECT_LE(error_of(weight.grad(), exact_weight.grad()), limit);
  EXPECT_LE(error_of(epilogue.shift.grad(), exact_shift.grad()), limit);
  EXPECT_EQ(residual.grad().defined(), adds);
  if (adds) {
    EXPECT_LE(error_of(residual.grad(), exact_residual.grad()), limit);
  }
}

TEST_P(Winograd, IsTheConvolution) {
  if (!has_winograd(GetParam().in, GetParam().out)) GTEST_SKIP() << "no kernel for these channels on this processor";
  expect_as_in_double(GetParam(), /*relu=*/false, /*adds=*/false);
}

TEST_P(Winograd, DoesWhatFollowsTheConvolution) {
  if (!has_winograd(GetParam().in, GetParam().out)) GTEST_SKIP() << "no kernel for these channels on this processor";
  expect_as_in_double(GetParam(), /*relu=*/true, /*adds=*/false);
  expect_as_in_double(GetParam(), /*relu=*/true, /*adds=*/true);
  expect_as_in_double(GetParam(), /*relu=*/false, /*adds=*/true);
}

TEST(WinogradInput, SuitsManyPixelsOfFloatInChannelsLastOrder) {
  if (!has_winograd(32, 48)) GTEST_SKIP() << "no kernel on this processor";
  const auto last = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = at::zeros({1, 32, 16, 16}).contiguous(last), weight = at::zeros({48, 32, 3, 3});
  EXPECT_TRUE(suits_winograd(x, weight));
  EXPECT_FALSE(suits_winograd(x.contiguous(), weight));
  EXPECT_FALSE(suits_winograd(x.to(at::kDouble), weight));
  EXPECT_FALSE(suits_winograd(x.to(at::kBFloat16), weight));
  EXPECT_FALSE(suits_winograd(x.narrow(2, 0, 15).contiguous(last), weight));
  EXPECT_FALSE(suits_winograd(x, weight.transpose(2, 3)));
  EXPECT_FALSE(suits_winograd(x, at::zeros({40, 32, 3, 3})));
  EXPECT_FALSE(suits_winograd(x, at::zeros({48, 32, 5, 5})));
}

TEST(WinogradInput, IsRefusedWhereItsPartsDoNotBelongTogether) {
  const at::Tensor x = at::zeros({1, 32, 16, 16}).contiguous(at::MemoryFormat::ChannelsLast),
                   weight = at::zeros({48, 32, 3, 3});
  Epilogue epilogue = no_epilogue(48);
  epilogue.residual = at::zeros({1, 48, 16, 15});
  EXPECT_THROW(convolve_winograd(x, weight, epilogue), c10::Error);
  EXPECT_THROW(convolve_winograd(x, weight, no_epilogue(32)), c10::Error);
}

TEST(WinogradOutput, KeepsWhatIsNotANumber) {
  if (!has_winograd(64, 64)) GTEST_SKIP() << "no kernel on this processor";
  at::Tensor x = at::zeros({1, 64, 16, 16});
  x[0][5][3][3] = NAN;
  Epilogue epilogue = no_epilogue(64);
  epilogue.relu = true;
  const at::Tensor y =
      convolve_winograd(x.contiguous(at::MemoryFormat::ChannelsLast), torch::randn({64, 64, 3, 3}), epilogue);
  EXPECT_TRUE(y[0][7][3][3].isnan().item<bool>());
}

// An image's result does not depend on which others stand beside it, or on how many threads there are.
TEST_P(Winograd, OfAnImageIsTheSameAmongOthers) {
  const auto& [images, in, out, height, width] = GetParam();
  if (!has_winograd(in, out)) GTEST_SKIP() << "no kernel for these channels on this processor";
  torch::manual_seed(4);
  const at::NoGradGuard no_grad;
  const auto channels_last = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = torch::randn({images, in, height, width}).contiguous(channels_last),
                   weight = torch::randn({out, in, 3, 3}), all = convolve_winograd(x, weight, no_epilogue(out));
  const int threads = at::get_num_threads();
  for (int64_t i = 0; i < images; ++i) {
    at::set_num_threads(i % 2 == 0 ? 1 : 3);
    const at::Tensor alone = convolve_winograd(x.narrow(0, i, 1).contiguous(channels_last), weight, no_epilogue(out));
    EXPECT_TRUE(alone.equal(all.narrow(0, i, 1))) << i;
  }
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Winograd,
                         testing::Values(Images{2, 64, 64, 30, 40}, Images{2, 256, 64, 18, 17},
                                         Images{2, 48, 432, 32, 32}, Images{1, 432, 48, 7, 9},
                                         Images{2, 48, 48, 16, 17}, Images{1, 512, 256, 16, 17},
                                         Images{1, 32, 32, 1, 300}, Images{1, 32, 512, 19, 15},
                                         Images{3, 32, 96, 15, 20}, Images{1, 96, 32, 7, 5}, Images{5, 256, 32, 1, 1},
                                         Images{2, 32, 32, 1, 9}, Images{2, 512, 64, 4, 5}, Images{3, 64, 64, 33, 2}));

}  // namespace
}  // namespace headroom
