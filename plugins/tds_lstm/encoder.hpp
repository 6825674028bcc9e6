// The time-depth-separable encoder: valid convolutions, causal, each norm after its ReLU. Sequences are [batch, time,
// features].
#pragma once

#include <torch/torch.h>

#include "architecture.hpp"

namespace headroom {

// Conv1d over time, ReLU, LayerNorm over the features.
struct ConvBlockImpl : torch::nn::Module {
  explicit ConvBlockImpl(const ConvBlockShape& shape);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Sequential conv;
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(ConvBlock);

// The features as [channels, feature_width]: one convolution over time that all widths share, with a residual.
struct TdsConvBlockImpl : torch::nn::Module {
  TdsConvBlockImpl(int64_t channels, int64_t feature_width, int64_t kernel_width);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Conv2d conv2d;
  torch::nn::LayerNorm layer_norm;
};
TORCH_MODULE(TdsConvBlock);

// Two linear layers at every time step, with a residual.
struct FullyConnectedBlockImpl : torch::nn::Module {
  explicit FullyConnectedBlockImpl(int64_t features);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Sequential fc_block;
  torch::nn::LayerNorm layer_norm;
};
TORCH_MODULE(FullyConnectedBlock);

struct StageImpl : torch::nn::Module {
  explicit StageImpl(const StageShape& shape);
  at::Tensor forward(at::Tensor x);

  torch::nn::Linear linear_layer{nullptr};
  ConvBlock conv1dblock{nullptr};
  torch::nn::Sequential tds_conv_blocks;
};
TORCH_MODULE(Stage);

// [batch, window, channels] -> [batch, n, features]; feature k sees the samples k * stride ... k * stride +
// left_context.
struct EncoderImpl : torch::nn::Module {
  explicit EncoderImpl(const EncoderShape& shape);
  at::Tensor forward(at::Tensor x);

  torch::nn::Sequential layers;
};
TORCH_MODULE(Encoder);

}  // namespace headroom
