#include "encoder.hpp"

#include "headroom/sdk/autocast.hpp"
#include "narrow_convolution.hpp"
#include "residual_norm.hpp"
#include "tds_convolution.hpp"
#include "winograd.hpp"

namespace headroom {
namespace {

torch::nn::LayerNorm layer_norm_over(int64_t features) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({features}));
}

at::Tensor convolve(const torch::nn::Conv1dImpl& conv1d, const at::Tensor& image) {
  const int64_t stride = conv1d.options.stride()->at(0);
  if (suits_winograd(image, conv1d.weight, stride)) return convolve_winograd(image, conv1d.weight, conv1d.bias, stride);
  if (suits_narrow(image, conv1d.weight)) return convolve_narrow(image, conv1d.weight, conv1d.bias, stride);
  return sdk::autocast_convolution(image, [&](const at::Tensor& given) {
    return at::conv2d(given, conv1d.weight.unsqueeze(2), conv1d.bias, {1, stride});
  });
}

}  // namespace

ConvBlockImpl::ConvBlockImpl(const ConvBlockShape& shape) {
  torch::nn::Conv1dOptions options(shape.in_channels, shape.out_channels, shape.kernel_size);
  conv = register_module("conv", torch::nn::Sequential(torch::nn::Conv1d(options.stride(shape.stride))));
  if (shape.norm) norm = register_module("norm", layer_norm_over(shape.out_channels));
}

// Seen as an image of height 1, x lies in the order that LibTorch calls channels-last, and so does the result. conv1d()
// would copy it into the other order.
at::Tensor ConvBlockImpl::forward(const at::Tensor& x) {
  const auto& conv1d = *conv->ptr<torch::nn::Conv1dImpl>(0);
  const at::Tensor image = x.transpose(1, 2).unsqueeze(2);
  const at::Tensor y = convolve(conv1d, image).relu_().squeeze(2).transpose(1, 2);
  return norm ? residual_norm(y, std::nullopt, *norm) : y;
}

TdsConvBlockImpl::TdsConvBlockImpl(int64_t channels, int64_t feature_width, int64_t kernel_width)
    : conv2d(torch::nn::Conv2dOptions(channels, channels, {1, kernel_width})),
      layer_norm(layer_norm_over(channels * feature_width)) {
  register_module("conv2d", conv2d);
  register_module("layer_norm", layer_norm);
}

at::Tensor TdsConvBlockImpl::forward(const at::Tensor& x) {
  const int64_t batch = x.size(0), time = x.size(1), features = x.size(2), channels = conv2d->options.in_channels();
  if (has_tds_convolution(x, conv2d->weight)) {
    const at::Tensor y = tds_convolution(x, conv2d->weight, conv2d->bias).relu_();
    return residual_norm(y, x.narrow(1, time - y.size(1), y.size(1)), *layer_norm);
  }
  const at::Tensor planes = x.transpose(1, 2).reshape({batch, channels, features / channels, time});
  const at::Tensor seen =
      sdk::autocast_convolution(planes, [this](const at::Tensor& in) { return conv2d->forward(in); });
  const at::Tensor y = torch::relu(seen.reshape({batch, features, -1}).transpose(1, 2));
  return residual_norm(y, x.narrow(1, time - y.size(1), y.size(1)), *layer_norm);
}

FullyConnectedBlockImpl::FullyConnectedBlockImpl(int64_t features)
    : fc_block(torch::nn::Linear(features, features), torch::nn::ReLU(torch::nn::ReLUOptions(true)),
               torch::nn::Linear(features, features)),
      layer_norm(layer_norm_over(features)) {
  register_module("fc_block", fc_block);
  register_module("layer_norm", layer_norm);
}

at::Tensor FullyConnectedBlockImpl::forward(const at::Tensor& x) {
  // Under autocast what comes out may be narrower than x: their sum keeps the precision of x.
  return residual_norm(fc_block->forward(x), x, *layer_norm);
}

StageImpl::StageImpl(const StageShape& shape) {
  if (shape.out_channels > 0) {
    linear_layer = register_module("linear_layer", torch::nn::Linear(shape.width(), shape.out_channels));
  }
  const auto layers = register_module("layers", std::make_shared<torch::nn::Module>());
  if (shape.in_conv_kernel_width > 0) {
    const ConvBlockShape front{shape.in_channels, shape.width(), shape.in_conv_kernel_width, shape.in_conv_stride,
                               true};
    conv1dblock = layers->register_module("conv1dblock", ConvBlock(front));
  }
  for (int64_t i = 0; i < shape.num_blocks; ++i) {
    tds_conv_blocks->push_back(TdsConvBlock(shape.channels, shape.feature_width, shape.kernel_width));
    tds_conv_blocks->push_back(FullyConnectedBlock(shape.width()));
  }
  const auto tds_block = layers->register_module("tds_block", std::make_shared<torch::nn::Module>());
  tds_block->register_module("tds_conv_blocks", tds_conv_blocks);
}

at::Tensor StageImpl::forward(at::Tensor x) {
  if (conv1dblock) x = conv1dblock->forward(x);
  if (!tds_conv_blocks->is_empty()) x = tds_conv_blocks->forward(x);
  return linear_layer ? linear_layer->forward(x) : x;
}

EncoderImpl::EncoderImpl(const EncoderShape& shape) {
  register_module("layers", layers);
  for (const ConvBlockShape& block : shape.conv_blocks) layers->push_back(ConvBlock(block));
  for (const StageShape& stage : shape.stages) layers->push_back(Stage(stage));
}

at::Tensor EncoderImpl::forward(at::Tensor x) { return layers->forward(x); }

}  // namespace headroom
