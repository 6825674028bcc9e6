// The two branches of a TMSA block, each a function of its input and an explicit list of parameters: nothing else that
// has a gradient goes in.
#pragma once

#include <torch/torch.h>
#include <vector>

#include "headroom/model.hpp"
#include "window.hpp"

namespace headroom {

using TensorList = std::vector<at::Tensor>;
using sdk::TensorSpan;

struct AttentionShape {
  int64_t heads = 1;
  Extent window{}, shift{};  // as configured
  bool mutual = false;       // pairs of frames look at each other, beside each window at itself
};

// x [n, frame, y, x, C]. parameters: norm1.weight, norm1.bias, attn.relative_position_bias_table, attn.qkv_self.weight,
// .bias, attn.proj.weight, .bias and, where mutual, attn.qkv_mut.weight, .bias. What is to be added to x.
at::Tensor attention_branch(const at::Tensor& x, TensorSpan parameters, const AttentionShape& shape,
                            WindowTables& tables);

// fc2(GELU(fc11 x) * fc12 x). parameters: fc11.weight, .bias, fc12.weight, .bias, fc2.weight, .bias
at::Tensor gated_mlp(const at::Tensor& x, TensorSpan parameters);

// The same behind a layer norm; norm2.weight, norm2.bias come first. What is to be added to x.
at::Tensor mlp_branch(const at::Tensor& x, TensorSpan parameters);

}  // namespace headroom
