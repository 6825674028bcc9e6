// Convolutions of 3 x 3 with stride 1 and padding 1 by Winograd's algorithm (winograd_kernel.hpp), for autograd.
#pragma once

#include <torch/torch.h>

namespace headroom {

// Whether convolve_winograd() takes these, and is faster than LibTorch: float32 on the CPU, without autocast, x
// [n, channels, height, width] in channels-last order, many enough pixels for what the weight's transform takes.
bool suits_winograd(const at::Tensor& x, const at::Tensor& weight);

// As at::conv2d(x, weight, {}, 1, 1), up to rounding; the result is in channels-last order. First order only: no
// gradient of a gradient.
at::Tensor convolve_winograd(const at::Tensor& x, const at::Tensor& weight);

}  // namespace headroom
