// ResNet-18 without its head, every batch norm frozen. Normalisation, residual and ReLU are part of the convolution
// before them: nothing but its output is kept for the backward pass.
#pragma once

#include <memory>
#include <torch/torch.h>
#include <vector>

#include "convolution/winograd.hpp"

namespace headroom {

// A convolution without bias; kaiming-normal over its outputs.
class Convolution : public torch::nn::Module {
 public:
  Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride);
  at::Tensor forward(const at::Tensor& x, const Epilogue& epilogue) const;

 private:
  at::Tensor weight_;
  int64_t stride_, padding_;
};

// Batch norm whose four tensors are buffers: y = x * scale + shift, for ever.
class FrozenBatchNorm : public torch::nn::Module {
 public:
  explicit FrozenBatchNorm(int64_t channels);
  Epilogue epilogue(bool relu, const at::Tensor& residual = {}) const;

 private:
  at::Tensor weight_, bias_, running_mean_, running_var_;
};

class BasicBlock : public torch::nn::Module {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  std::shared_ptr<Convolution> conv1_, conv2_, shrink_;
  std::shared_ptr<FrozenBatchNorm> norm1_, norm2_, shrink_norm_;
};

class Backbone : public torch::nn::Module {
 public:
  explicit Backbone(const std::vector<int64_t>& widths);

  // [n, 3, h, w], normalised -> the outputs of maxpool and of layer1 to layer4.
  std::vector<at::Tensor> stages(const at::Tensor& images) const;
  at::Tensor forward(const at::Tensor& images) const;  // the last of them alone

 private:
  at::Tensor stem(const at::Tensor& images) const;

  std::shared_ptr<Convolution> conv1_;
  std::shared_ptr<FrozenBatchNorm> bn1_;
  std::vector<std::vector<std::shared_ptr<BasicBlock>>> layers_;
};

}  // namespace headroom
