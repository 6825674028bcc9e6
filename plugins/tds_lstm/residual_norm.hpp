// A residual connection and the layer normalisation behind it as one autograd function over norm_kernel.hpp.
#pragma once

#include <optional>
#include <torch/torch.h>

namespace headroom {

// norm(y + residual), or norm(y) without. y and residual [batch, time, features]. First order only where the kernels
// compute it: float32 on the CPU, without autocast.
at::Tensor residual_norm(const at::Tensor& y, const std::optional<at::Tensor>& residual,
                         torch::nn::LayerNormImpl& norm);

}  // namespace headroom
