#include "backbone.hpp"

#include <array>
#include <string>

#include "headroom/sdk/autocast.hpp"

namespace headroom {
namespace {

constexpr int64_t few_pixels = 256;

}  // namespace

Convolution::Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride)
    : stride_(stride), padding_(kernel / 2) {
  weight_ = register_parameter("weight", at::empty({out, in, kernel, kernel}));
  torch::nn::init::kaiming_normal_(weight_, 0.0, torch::kFanOut, torch::kReLU);
}

at::Tensor Convolution::forward(const at::Tensor& x, const Epilogue& epilogue) const {
  if (stride_ == 1 && suits_winograd(x, weight_)) return convolve_winograd(x, weight_, epilogue);
  // Of few pixels oneDNN takes longer to turn a weight for channels-last images than to use it.
  const int64_t pixels = x.size(0) * x.size(2) * x.size(3) / (stride_ * stride_);
  const std::array stride = {stride_, stride_}, padding = {padding_, padding_};
  const bool changes_weight = !sdk::Autocast::now(x.device()).enabled && pixels > weight_[0].numel();
  const at::Tensor weight = changes_weight ? weight_ * epilogue.scale.view({-1, 1, 1, 1}) : weight_;
  at::Tensor y = sdk::autocast_convolution(pixels < few_pixels ? x.contiguous() : x, [&](const at::Tensor& images) {
    return at::conv2d(images, weight, changes_weight ? epilogue.shift : at::Tensor(), stride, padding);
  });
  if (!changes_weight) y.mul_(epilogue.scale.view({-1, 1, 1})).add_(epilogue.shift.view({-1, 1, 1}));
  if (epilogue.residual.defined()) y.add_(epilogue.residual);
  return epilogue.relu ? y.relu_() : y;
}

FrozenBatchNorm::FrozenBatchNorm(int64_t channels) {
  weight_ = register_buffer("weight", at::ones({channels}));
  bias_ = register_buffer("bias", at::zeros({channels}));
  running_mean_ = register_buffer("running_mean", at::zeros({channels}));
  running_var_ = register_buffer("running_var", at::ones({channels}));
}

Epilogue FrozenBatchNorm::epilogue(bool relu, const at::Tensor& residual) const {
  const at::Tensor scale = weight_ * (running_var_ + 1e-5).rsqrt();
  return {scale, bias_ - running_mean_ * scale, residual, relu};
}

BasicBlock::BasicBlock(int64_t in, int64_t out, int64_t stride) {
  conv1_ = register_module("conv1", std::make_shared<Convolution>(in, out, 3, stride));
  norm1_ = register_module("bn1", std::make_shared<FrozenBatchNorm>(out));
  conv2_ = register_module("conv2", std::make_shared<Convolution>(out, out, 3, 1));
  norm2_ = register_module("bn2", std::make_shared<FrozenBatchNorm>(out));
  if (stride == 1 && in == out) return;
  const auto downsample = register_module("downsample", std::make_shared<torch::nn::Module>());
  shrink_ = downsample->register_module("0", std::make_shared<Convolution>(in, out, 1, stride));
  shrink_norm_ = downsample->register_module("1", std::make_shared<FrozenBatchNorm>(out));
}

at::Tensor BasicBlock::forward(const at::Tensor& x) const {
  const at::Tensor inner = conv1_->forward(x, norm1_->epilogue(/*relu=*/true));
  const at::Tensor skip = shrink_ ? shrink_->forward(x, shrink_norm_->epilogue(/*relu=*/false)) : x;
  return conv2_->forward(inner, norm2_->epilogue(/*relu=*/true, skip));
}

Backbone::Backbone(const std::vector<int64_t>& widths) {
  conv1_ = register_module("conv1", std::make_shared<Convolution>(3, widths.front(), 7, 2));
  bn1_ = register_module("bn1", std::make_shared<FrozenBatchNorm>(widths.front()));
  int64_t in = widths.front();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto layer = register_module("layer" + std::to_string(i + 1), std::make_shared<torch::nn::Module>());
    layers_.push_back({layer->register_module("0", std::make_shared<BasicBlock>(in, widths[i], i == 0 ? 1 : 2)),
                       layer->register_module("1", std::make_shared<BasicBlock>(widths[i], widths[i], 1))});
    in = widths[i];
  }
}

at::Tensor Backbone::stem(const at::Tensor& images) const {
  return at::max_pool2d(conv1_->forward(images, bn1_->epilogue(/*relu=*/true)), {3, 3}, {2, 2}, {1, 1});
}

std::vector<at::Tensor> Backbone::stages(const at::Tensor& images) const {
  std::vector<at::Tensor> outputs = {stem(images)};
  for (const auto& layer : layers_) {
    at::Tensor x = outputs.back();
    for (const auto& block : layer) x = block->forward(x);
    outputs.push_back(x);
  }
  return outputs;
}

at::Tensor Backbone::forward(const at::Tensor& images) const { return stages(images).back(); }

}  // namespace headroom
