// Multi-head attention and the linear layer it is made of, batch first: [batch, tokens, features].
#pragma once

#include <memory>
#include <torch/torch.h>

#include "dropout.hpp"

namespace headroom {

enum class Init {
  uniform,  // U(+-1 / sqrt(inputs)), weights and biases
  xavier    // xavier-uniform weights; biases as above
};

struct Dense : torch::nn::Module {
  Dense(int64_t in, int64_t out, Init init = Init::uniform);
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }

  at::Tensor weight, bias;
};

struct LayerNorm : torch::nn::Module {
  explicit LayerNorm(int64_t width);
  at::Tensor forward(const at::Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5); }

  at::Tensor weight, bias;
};

class Attention : public torch::nn::Module {
 public:
  Attention(int64_t width, int64_t heads, Init init);

  // `attended`, where defined, is bool [batch, keys]: false hides a key. Queries and keys that are one tensor are
  // projected at once.
  at::Tensor forward(const Dropout& dropout, const at::Tensor& queries, const at::Tensor& keys,
                     const at::Tensor& values, const at::Tensor& attended = {}) const;

 private:
  at::Tensor by_head(const at::Tensor& x) const;

  int64_t heads_;
  at::Tensor in_proj_weight_, in_proj_bias_;  // rows: queries, keys, values
  std::shared_ptr<Dense> out_proj_;
};

}  // namespace headroom
