// Blocks of attention in windows of a few frames (TMSA) and groups of them (TMSAG).
#pragma once

#include <memory>
#include <torch/torch.h>
#include <vector>

#include "attention.hpp"
#include "layers.hpp"
#include "pass.hpp"

namespace headroom {

// The gated MLP: names fc11, fc12, fc2.
class GatedMlp : public torch::nn::Module {
 public:
  GatedMlp(int64_t in, int64_t hidden, int64_t out);
  at::Tensor forward(const at::Tensor& x) const { return gated_mlp(x, parameter_list()); }
  TensorList parameter_list() const;

 private:
  std::shared_ptr<Linear> fc11_, fc12_, fc2_;
};

struct BlockShape {
  int64_t width = 0, hidden = 0;  // channels, and inside the MLP
  AttentionShape attention;
  double drop_path = 0.0;  // probability that a sample goes without a branch, in training
};

class Tmsa : public torch::nn::Module {
 public:
  explicit Tmsa(const BlockShape& shape);
  // `site` is this block's own.
  at::Tensor forward(const Pass& pass, const at::Tensor& x, uint64_t site) const;
  TensorList attention_parameters() const;
  TensorList mlp_parameters() const;

 private:
  BlockShape shape_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Linear> qkv_self_, qkv_mut_, proj_;
  at::Tensor relative_position_bias_table_;
  std::shared_ptr<GatedMlp> mlp_;
};

// Blocks one after another, every other one with its windows moved by half; drop_path[i] is of block i.
class TmsaGroup : public torch::nn::Module {
 public:
  TmsaGroup(const BlockShape& shape, const std::vector<double>& drop_path);
  at::Tensor forward(const Pass& pass, at::Tensor x, uint64_t site) const;

 private:
  std::vector<std::shared_ptr<Tmsa>> blocks_;
};

}  // namespace headroom
