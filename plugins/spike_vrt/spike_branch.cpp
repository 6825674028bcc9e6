#include "spike_branch.hpp"

#include <cmath>
#include <string>

namespace headroom {
namespace {

constexpr int64_t kHeads = 4;

at::Tensor mlp(const Linear& in, const Linear& out, const at::Tensor& x) {
  return out.forward(at::gelu(in.forward(x)));
}

// [n, frame, y, x, heads * width] -> [n, y, x, heads, frame, width]
at::Tensor by_head(const at::Tensor& x) { return x.unflatten(4, {kHeads, -1}).permute({0, 2, 3, 4, 1, 5}); }

}  // namespace

FrameAttention::FrameAttention(int64_t width) {
  in_proj_weight_ = register_parameter("in_proj_weight", at::empty({3 * width, width}));
  in_proj_bias_ = register_parameter("in_proj_bias", at::zeros({3 * width}));
  torch::nn::init::xavier_uniform_(in_proj_weight_);
  out_proj_ = add_layer<Linear>(*this, "out_proj", width, width);
  torch::nn::init::zeros_(out_proj_->bias);
}

at::Tensor FrameAttention::forward(const at::Tensor& queries, const at::Tensor& seen) const {
  const int64_t width = in_proj_weight_.size(1);
  const std::vector<at::Tensor> weight = in_proj_weight_.split_with_sizes({width, 2 * width}),
                                bias = in_proj_bias_.split_with_sizes({width, 2 * width});
  const at::Tensor q = by_head(at::linear(queries, weight[0], bias[0]));
  const std::vector<at::Tensor> both = at::linear(seen, weight[1], bias[1]).chunk(2, 4);
  const double scale = 1.0 / std::sqrt(static_cast<double>(width / kHeads));
  const at::Tensor logits = (q * scale).matmul(by_head(both[0]).transpose(-2, -1));
  const at::Tensor mixed = logits.softmax(-1).matmul(by_head(both[1]));
  return out_proj_->forward(mixed.permute({0, 4, 1, 2, 3, 5}).flatten(4));
}

ResidualConv::ResidualConv(int64_t width) {
  conv1_ = add_layer<VolumeConv>(*this, "conv1", width, width, 1);
  conv2_ = add_layer<VolumeConv>(*this, "conv2", width, width, 1);
}

at::Tensor ResidualConv::forward(const at::Tensor& x) const {
  return (x + conv2_->forward(conv1_->forward(x).relu_())).relu_();
}

SpikeEncoder::SpikeEncoder(int64_t bins, int64_t width) {
  in_proj_ = add_layer<VolumeConv>(*this, "in_proj", bins, width, 1);
  for (std::size_t scale = 0; scale < kScales; ++scale) {
    const std::string before = std::to_string(scale - 1);
    if (scale > 0) downs_[scale - 1] = add_layer<VolumeConv>(*this, "downs." + before, width, width, 2);
    const std::string name = scale == 0 ? "res0." : "residuals." + before + '.';
    for (std::size_t i = 0; i < 2; ++i)
      residuals_[scale][i] = add_layer<ResidualConv>(*this, name + std::to_string(i), width);
  }
}

std::array<at::Tensor, kScales> SpikeEncoder::forward(const at::Tensor& voxel) const {
  std::array<at::Tensor, kScales> features;
  at::Tensor x = in_proj_->forward(voxel.transpose(1, 2)).relu_();
  for (std::size_t scale = 0; scale < kScales; ++scale) {
    if (scale > 0) x = downs_[scale - 1]->forward(x).relu_();
    for (const auto& residual : residuals_[scale]) x = residual->forward(x);
    features[scale] = x.permute({0, 2, 3, 4, 1});
  }
  return features;
}

TemporalBlock::TemporalBlock(int64_t width) {
  ln1_ = add_layer<LayerNorm>(*this, "ln1", width);
  attn_ = add_layer<FrameAttention>(*this, "attn", width);
  ln2_ = add_layer<LayerNorm>(*this, "ln2", width);
  mlp_in_ = add_layer<Linear>(*this, "mlp.0", width, 2 * width);
  mlp_out_ = add_layer<Linear>(*this, "mlp.2", 2 * width, width);
}

at::Tensor TemporalBlock::forward(const at::Tensor& input) const {
  const at::Tensor normed = ln1_->forward(input);
  const at::Tensor x = input + attn_->forward(normed, normed);
  return x + mlp(*mlp_in_, *mlp_out_, ln2_->forward(x));
}

FuseBlock::FuseBlock(int64_t width) {
  ln_q_ = add_layer<LayerNorm>(*this, "ln_q", width);
  ln_kv_ = add_layer<LayerNorm>(*this, "ln_kv", width);
  attn_ = add_layer<FrameAttention>(*this, "attn.attn", width);
  ln_ffn_ = add_layer<LayerNorm>(*this, "ln_ffn", width);
  ffn_in_ = add_layer<Linear>(*this, "ffn.0", width, 2 * width);
  ffn_out_ = add_layer<Linear>(*this, "ffn.2", 2 * width, width);
}

at::Tensor FuseBlock::forward(const at::Tensor& features, const at::Tensor& spikes) const {
  const at::Tensor x = features + attn_->forward(ln_q_->forward(features), ln_kv_->forward(spikes));
  return x + mlp(*ffn_in_, *ffn_out_, ln_ffn_->forward(x));
}

SpikeBranch::SpikeBranch(torch::nn::Module& owner, int64_t bins, int64_t width) {
  encoder_ = add_layer<SpikeEncoder>(owner, "spike_encoder", bins, width);
  for (std::size_t i = 0; i < kScales; ++i) {
    const std::string scale = std::to_string(i);
    temporal_[i] = add_layer<TemporalBlock>(owner, "spike_temporal_sa.blocks." + scale, width);
    fuse_[i] = add_layer<FuseBlock>(owner, "cross_attn_fuse.fuse_blocks." + scale, width);
  }
}

std::array<at::Tensor, kScales> SpikeBranch::features(const at::Tensor& voxel) const {
  std::array<at::Tensor, kScales> features = encoder_->forward(voxel);
  for (std::size_t i = 0; i < kScales; ++i) features[i] = temporal_[i]->forward(features[i]);
  return features;
}

at::Tensor SpikeBranch::fuse(std::size_t scale, const at::Tensor& stage, const at::Tensor& spikes) const {
  return fuse_[scale]->forward(stage, spikes);
}

}  // namespace headroom
