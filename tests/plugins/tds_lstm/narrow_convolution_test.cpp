// Strided convolutions of few channels as products of overlapping rows against LibTorch's in float64.
#include "narrow_convolution.hpp"

#include <gtest/gtest.h>
#include <limits>

#include "against_libtorch.hpp"
#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {
namespace {

struct NarrowCase {
  int64_t batch, time, channels, kernel, stride, out;
};

class TdsNarrow : public testing::TestWithParam<NarrowCase> {};

TEST_P(TdsNarrow, EqualsLibTorch) {
  const NarrowCase& shape = GetParam();
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({shape.batch, shape.channels, 1, shape.time}),
                   weight = torch::randn({shape.out, shape.channels, shape.kernel}), bias = torch::randn({shape.out});
  expect_as_libtorch(
      {x, weight, bias}, [&](const Tensors& of) { return convolve_narrow(of[0], of[1], of[2], shape.stride); },
      [&](const Tensors& of) {
        return at::conv2d(of[0], of[1].unsqueeze(2), of[2], {1, shape.stride});
      },
      2e-6, 2e-6);
}

// Windows that overlap once, several times and not at all; steps behind the last window; whole panels and parts; fewer
// steps than overlap.
INSTANTIATE_TEST_SUITE_P(Shapes, TdsNarrow,
                         testing::Values(NarrowCase{5, 500, 16, 5, 2, 32}, NarrowCase{3, 103, 16, 11, 5, 64},
                                         NarrowCase{2, 50, 3, 21, 2, 7}, NarrowCase{1, 33, 5, 2, 4, 17},
                                         NarrowCase{4, 12, 8, 11, 1, 33}, NarrowCase{2, 9, 1, 9, 3, 1},
                                         NarrowCase{2, 40, 1, 5, 2, 8}, NarrowCase{2, 40, 16, 1, 1, 8}),
                         [](const auto& test) {
                           const NarrowCase& shape = test.param;
                           return std::to_string(shape.channels) + "k" + std::to_string(shape.kernel) + "s" +
                                  std::to_string(shape.stride) + "o" + std::to_string(shape.out);
                         });

TEST(TdsNarrow, TakesViews) {
  const at::Tensor wide = torch::randn({2, 40, 16}), weight = torch::randn({8, 16, 5}), bias = torch::randn({8});
  const at::Tensor view = wide.transpose(1, 2).unsqueeze(2), y = convolve_narrow(view, weight, bias, 2);
  EXPECT_TRUE(y.equal(convolve_narrow(view.contiguous(), weight, bias, 2)));
}

// What one sample holds is not seen in another.
TEST(TdsNarrow, SamplesDoNotMeet) {
  const at::Tensor x = torch::randn({4, 16, 1, 60}), weight = torch::randn({32, 16, 5}), bias = torch::randn({32});
  const at::Tensor y = convolve_narrow(x, weight, bias, 2);
  x[1].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor then = convolve_narrow(x, weight, bias, 2);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(then[i].equal(y[i]), i != 1) << i;
}

TEST(TdsNarrow, SuitsFewChannelsAlone) {
  const at::Tensor x = torch::zeros({8, 16, 1, 100});
  EXPECT_EQ(suits_narrow(x, torch::zeros({64, 16, 9})), sdk::cpu_isa() != sdk::CpuIsa::baseline);
  EXPECT_FALSE(suits_narrow(x, torch::zeros({65, 16, 9})));
  EXPECT_FALSE(suits_narrow(x, torch::zeros({64, 16, 65})));
  EXPECT_FALSE(suits_narrow(x.to(at::kDouble), torch::zeros({64, 16, 9})));
  EXPECT_FALSE(suits_narrow(x.narrow(3, 0, 8), torch::zeros({64, 16, 9})));  // shorter than the kernel
}

}  // namespace
}  // namespace headroom
