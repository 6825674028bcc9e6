// Strided convolutions by Winograd's filtering against LibTorch's in float64.
#include <gtest/gtest.h>
#include <limits>

#include "against_libtorch.hpp"
#include "headroom/sdk/cpu_kernel.hpp"
#include "winograd.hpp"

namespace headroom {
namespace {

struct StridedCase {
  int64_t batch, time, channels, kernel, stride, out;
};

class TdsWinograd : public testing::TestWithParam<StridedCase> {
 protected:
  void SetUp() override {
    if (sdk::cpu_isa() == sdk::CpuIsa::baseline) GTEST_SKIP() << "there is no kernel for this instruction set";
  }
};

TEST_P(TdsWinograd, EqualsLibTorch) {
  const StridedCase& shape = GetParam();
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({shape.batch, shape.channels, 1, shape.time}),
                   weight = torch::randn({shape.out, shape.channels, shape.kernel}), bias = torch::randn({shape.out});
  expect_as_libtorch(
      {x, weight, bias}, [&](const Tensors& of) { return convolve_winograd(of[0], of[1], of[2], shape.stride); },
      [&](const Tensors& of) {
        return at::conv2d(of[0], of[1].unsqueeze(2), of[2], {1, shape.stride});
      },
      1e-5, 1e-5);
}

// Two to five taps; whole and partial tiles, frames and frames beyond the last output; one sample and several parts.
INSTANTIATE_TEST_SUITE_P(Shapes, TdsWinograd,
                         testing::Values(StridedCase{3, 456, 256, 5, 2, 256}, StridedCase{9, 226, 256, 17, 4, 64},
                                         StridedCase{2, 512, 16, 14, 5, 32}, StridedCase{8, 46, 32, 9, 2, 16},
                                         StridedCase{8, 41, 16, 4, 2, 48}, StridedCase{40, 12, 16, 4, 1, 16},
                                         StridedCase{11, 131, 32, 12, 3, 16}),
                         [](const auto& test) {
                           const StridedCase& shape = test.param;
                           return std::to_string(shape.channels) + "k" + std::to_string(shape.kernel) + "s" +
                                  std::to_string(shape.stride) + "t" + std::to_string(shape.time);
                         });

// What one sample holds is not seen in another.
TEST_F(TdsWinograd, SamplesDoNotMeet) {
  const at::Tensor x = torch::randn({8, 32, 1, 101}), weight = torch::randn({32, 32, 9}), bias = torch::randn({32});
  const at::Tensor y = convolve_winograd(x, weight, bias, 2);
  x[3].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor then = convolve_winograd(x, weight, bias, 2);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(then[i].equal(y[i]), i != 3) << i;
}

TEST_F(TdsWinograd, SuitsWideShapesAlone) {
  const at::Tensor x = torch::zeros({8, 256, 1, 100});
  EXPECT_TRUE(suits_winograd(x, torch::zeros({256, 256, 9}), 2));
  EXPECT_FALSE(suits_winograd(x, torch::zeros({64, 256, 9}), 2));    // narrow
  EXPECT_FALSE(suits_winograd(x, torch::zeros({256, 256, 3}), 4));   // no overlap: nothing to save
  EXPECT_FALSE(suits_winograd(x, torch::zeros({256, 256, 21}), 2));  // too many taps
  EXPECT_FALSE(suits_winograd(x, torch::zeros({250, 256, 9}), 2));   // no whole vectors
  EXPECT_FALSE(suits_winograd(x.to(at::kDouble), torch::zeros({256, 256, 9}), 2));
  EXPECT_FALSE(suits_winograd(x.narrow(3, 0, 8), torch::zeros({256, 256, 9}), 2));  // shorter than the kernel
  EXPECT_FALSE(suits_winograd(x.narrow(0, 0, 1), torch::zeros({256, 256, 9}), 2));  // too few outputs
}

}  // namespace
}  // namespace headroom
