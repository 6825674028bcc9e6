// Scaled dot-product attention within windows, with a learned bias and a mask by labels.
#pragma once

#include <torch/torch.h>

namespace headroom {

// qkv [windows, tokens, 3, heads, width]; bias [heads, tokens, tokens] or undefined; labels [label windows, tokens] or
// undefined: window i has those of i % label windows, and tokens of different labels are -100 apart. With partners, the
// queries of window i are those of window i ^ 1. [windows, tokens, heads * width]
// In LibTorch's operations.
at::Tensor attend_plainly(const at::Tensor& qkv, const at::Tensor& bias, const at::Tensor& labels, bool partners);
// On the CPU by a kernel in float32 that keeps no probability for backward; elsewhere and in float64 plainly.
at::Tensor attend(const at::Tensor& qkv, const at::Tensor& bias, const at::Tensor& labels, bool partners);

}  // namespace headroom
