// Convolutions over time with a stride as an autograd function over winograd_kernel.hpp.
#pragma once

#include <torch/torch.h>

namespace headroom {

// Whether convolve_winograd() computes this, and it pays: float32 on the CPU, without autocast; a wide shape with a
// kernel, and enough outputs for the weight's transform. x [batch, channels, 1, time], weight [out, channels, kernel].
bool suits_winograd(const at::Tensor& x, const at::Tensor& weight, int64_t stride);

// x, weight and bias [out] -> [batch, out, 1, (time - kernel) / stride + 1] in the order of channels-last, which x best
// lies in too. First order only.
at::Tensor convolve_winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride);

}  // namespace headroom
