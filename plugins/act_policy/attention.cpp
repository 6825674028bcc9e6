#include "attention.hpp"

#include <cmath>
#include <limits>

namespace headroom {

Dense::Dense(int64_t in, int64_t out, Init init) {
  weight = register_parameter("weight", at::empty({out, in}));
  bias = register_parameter("bias", at::empty({out}));
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));
  if (init == Init::xavier) {
    torch::nn::init::xavier_uniform_(weight);
  } else {
    torch::nn::init::uniform_(weight, -bound, bound);
  }
  torch::nn::init::uniform_(bias, -bound, bound);
}

LayerNorm::LayerNorm(int64_t width) {
  weight = register_parameter("weight", at::ones({width}));
  bias = register_parameter("bias", at::zeros({width}));
}

Attention::Attention(int64_t width, int64_t heads, Init init) : heads_(heads) {
  in_proj_weight_ = register_parameter("in_proj_weight", at::empty({3 * width, width}));
  in_proj_bias_ = register_parameter("in_proj_bias", at::zeros({3 * width}));
  torch::nn::init::xavier_uniform_(in_proj_weight_);
  out_proj_ = register_module("out_proj", std::make_shared<Dense>(width, width, init));
  torch::nn::init::zeros_(out_proj_->bias);
}

at::Tensor Attention::by_head(const at::Tensor& x) const {
  return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
}

at::Tensor Attention::forward(const Dropout& dropout, const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values, const at::Tensor& attended) const {
  const int64_t width = in_proj_weight_.size(1);
  at::Tensor q, k, v;
  if (queries.is_same(keys)) {
    const std::vector<at::Tensor> weight = in_proj_weight_.split_with_sizes({2 * width, width});
    const std::vector<at::Tensor> bias = in_proj_bias_.split_with_sizes({2 * width, width});
    const std::vector<at::Tensor> both = at::linear(queries, weight[0], bias[0]).split(width, 2);
    q = by_head(both[0]), k = by_head(both[1]), v = by_head(at::linear(values, weight[1], bias[1]));
  } else {
    const std::vector<at::Tensor> weight = in_proj_weight_.split(width), bias = in_proj_bias_.split(width);
    q = by_head(at::linear(queries, weight[0], bias[0]));
    k = by_head(at::linear(keys, weight[1], bias[1]));
    v = by_head(at::linear(values, weight[2], bias[2]));
  }
  const at::Tensor mask = attended.defined() ? attended.unsqueeze(1).unsqueeze(1) : at::Tensor();
  at::Tensor result;
  if (dropout.active()) {
    at::Tensor logits = (q * (1.0 / std::sqrt(static_cast<double>(q.size(3))))).matmul(k.transpose(2, 3));
    if (mask.defined()) logits = logits.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
    result = dropout(logits.softmax(-1)).matmul(v);
  } else {
    const auto optional_mask = mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt;
    result = at::scaled_dot_product_attention(q, k, v, optional_mask);
  }
  return out_proj_->forward(result.transpose(1, 2).reshape(queries.sizes()));
}

}  // namespace headroom
