// What plugins share to convolve images: 3 x 3 with stride 1 and padding 1 by Winograd's algorithm
// (winograd_kernel.hpp), for autograd. This header is the way in.
#pragma once

#include <torch/torch.h>

namespace headroom {

// Whether convolve_winograd() takes these, and is faster than LibTorch: float32 on the CPU, without autocast, x
// [n, channels, height, width] in channels-last order, enough pixels for what the weight's transform takes.
bool suits_winograd(const at::Tensor& x, const at::Tensor& weight);

// What follows a convolution, as one operation with it: y = [relu](y [* scale] + shift [+ residual]). An undefined
// tensor: not this.
struct Epilogue {
  at::Tensor scale;     // [channels], has no gradient
  at::Tensor shift;     // [channels]
  at::Tensor residual;  // as y
  bool relu;
};

// REQUIRES: suits_winograd(x, weight), but for the number of pixels; float32 in the epilogue.
// As at::conv2d(x, weight, {}, 1, 1) and the epilogue, up to rounding; the result is in channels-last order. First
// order only: no gradient of a gradient.
at::Tensor convolve_winograd(const at::Tensor& x, const at::Tensor& weight, const Epilogue& epilogue);

}  // namespace headroom
