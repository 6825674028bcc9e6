// Convolutions over time with a stride and few output channels as an autograd function. A step of the output reads one
// run of neighbouring numbers, so the convolution is a product of overlapping rows with the weight (small_product.hpp).
#pragma once

#include <torch/torch.h>

namespace headroom {

// Whether convolve_narrow() computes this, and it pays: float32 on the CPU, without autocast; few channels.
// x [batch, channels, 1, time], weight [out, channels, kernel].
bool suits_narrow(const at::Tensor& x, const at::Tensor& weight);

// x, weight and bias [out] -> [batch, out, 1, (time - kernel) / stride + 1] in the order of channels-last, which x best
// lies in too. First order only.
at::Tensor convolve_narrow(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride);

}  // namespace headroom
