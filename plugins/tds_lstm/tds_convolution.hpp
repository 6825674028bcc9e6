// The time-depth-separable convolution as an autograd function over tds_kernel.hpp.
#pragma once

#include <torch/torch.h>

namespace headroom {

// Whether tds_convolution() computes with these: float32 on the CPU, a shape with a kernel, without autocast.
bool has_tds_convolution(const at::Tensor& x, const at::Tensor& weight);

// x [batch, time, channels * width], weight [channels, channels, 1, kernel], bias [channels] -> [batch, time - kernel +
// 1, channels * width]. First order only.
at::Tensor tds_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace headroom
