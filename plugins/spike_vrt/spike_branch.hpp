// What spikes have to say, at the four scales of the network's first stages: an encoder of their own, attention over
// time, and the stages' attention to the result.
#pragma once

#include <array>
#include <memory>
#include <torch/torch.h>

#include "layers.hpp"
#include "pass.hpp"

namespace headroom {

inline constexpr std::size_t kScales = 4;

// Attention between the frames of one pixel, under the names of torch.nn.MultiheadAttention.
class FrameAttention : public torch::nn::Module {
 public:
  explicit FrameAttention(int64_t width);
  // Both [n, frame, y, x, channel].
  at::Tensor forward(const at::Tensor& queries, const at::Tensor& seen) const;

 private:
  at::Tensor in_proj_weight_, in_proj_bias_;  // rows: queries, keys, values
  std::shared_ptr<Linear> out_proj_;
};

class ResidualConv : public torch::nn::Module {
 public:
  explicit ResidualConv(int64_t width);
  at::Tensor forward(const at::Tensor& volume) const;

 private:
  std::shared_ptr<VolumeConv> conv1_, conv2_;
};

class SpikeEncoder : public torch::nn::Module {
 public:
  SpikeEncoder(int64_t bins, int64_t width);
  // voxel [n, frame, bin, y, x]; features [n, frame, y, x, channel], each half as large as the one before.
  std::array<at::Tensor, kScales> forward(const at::Tensor& voxel) const;

 private:
  std::shared_ptr<VolumeConv> in_proj_;
  std::array<std::shared_ptr<VolumeConv>, kScales - 1> downs_;
  std::array<std::array<std::shared_ptr<ResidualConv>, 2>, kScales> residuals_;
};

// Frames attend to each other, then an MLP: ln1, attn, ln2, mlp.{0, 2}.
class TemporalBlock : public torch::nn::Module {
 public:
  explicit TemporalBlock(int64_t width);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  std::shared_ptr<LayerNorm> ln1_, ln2_;
  std::shared_ptr<FrameAttention> attn_;
  std::shared_ptr<Linear> mlp_in_, mlp_out_;
};

// A stage's features attend to the spikes': ln_q, ln_kv, attn.attn, ln_ffn, ffn.{0, 2}.
class FuseBlock : public torch::nn::Module {
 public:
  explicit FuseBlock(int64_t width);
  at::Tensor forward(const at::Tensor& features, const at::Tensor& spikes) const;

 private:
  std::shared_ptr<LayerNorm> ln_q_, ln_kv_, ln_ffn_;
  std::shared_ptr<FrameAttention> attn_;
  std::shared_ptr<Linear> ffn_in_, ffn_out_;
};

// Registers spike_encoder, spike_temporal_sa and cross_attn_fuse in `owner`.
class SpikeBranch {
 public:
  SpikeBranch(torch::nn::Module& owner, int64_t bins, int64_t width);
  // Of the spikes alone, for fuse().
  std::array<at::Tensor, kScales> features(const at::Tensor& voxel) const;
  at::Tensor fuse(std::size_t scale, const at::Tensor& stage, const at::Tensor& spikes) const;

 private:
  std::shared_ptr<SpikeEncoder> encoder_;
  std::array<std::shared_ptr<TemporalBlock>, kScales> temporal_;
  std::array<std::shared_ptr<FuseBlock>, kScales> fuse_;
};

}  // namespace headroom
