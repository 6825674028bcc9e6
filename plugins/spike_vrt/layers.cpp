#include "layers.hpp"

#include <cmath>

#include "convolution/winograd.hpp"
#include "headroom/sdk/autocast.hpp"

namespace headroom {
namespace {

// U(+-1 / sqrt(inputs of one output)), weight and bias.
void register_uniform(torch::nn::Module& owner, at::Tensor& weight, at::Tensor& bias, at::IntArrayRef shape) {
  weight = owner.register_parameter("weight", at::empty(shape));
  bias = owner.register_parameter("bias", at::empty({shape[0]}));
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight.numel() / shape[0]));
  torch::nn::init::uniform_(weight, -bound, bound);
  torch::nn::init::uniform_(bias, -bound, bound);
}

}  // namespace

Linear::Linear(int64_t in, int64_t out) { register_uniform(*this, weight, bias, {out, in}); }

LayerNorm::LayerNorm(int64_t width) {
  weight = register_parameter("weight", at::ones({width}));
  bias = register_parameter("bias", at::zeros({width}));
}

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel) {
  register_uniform(*this, weight, bias, {out, in, kernel, kernel});
}

at::Tensor Conv2d::forward(const at::Tensor& images) const { return convolve(images, weight, bias); }

FrameConv::FrameConv(int64_t in, int64_t out) { register_uniform(*this, weight, bias, {out, in, 1, 3, 3}); }

at::Tensor FrameConv::forward(const at::Tensor& features) const {
  return features_of(convolve(images_of(features), weight.squeeze(2), bias), features.size(0));
}

VolumeConv::VolumeConv(int64_t in, int64_t out, int64_t stride_) : stride(stride_) {
  register_uniform(*this, weight, bias, {out, in, 3, 3, 3});
}

at::Tensor VolumeConv::forward(const at::Tensor& volume) const {
  return sdk::autocast_convolution(volume, [&](const at::Tensor& x) {
    return at::conv3d(x, weight, bias, {1, stride, stride}, 1);
  });
}

at::Tensor convolve(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias) {
  if (suits_winograd(images, weight)) return convolve_winograd(images, weight, {{}, bias, {}, /*relu=*/false});
  return sdk::autocast_convolution(
      images, [&](const at::Tensor& x) { return at::conv2d(x, weight, bias, 1, weight.size(2) / 2); });
}

at::Tensor images_of(const at::Tensor& features) { return features.flatten(0, 1).permute({0, 3, 1, 2}); }

at::Tensor features_of(const at::Tensor& images, int64_t batch) {
  return images.permute({0, 2, 3, 1}).unflatten(0, {batch, images.size(0) / batch});
}

}  // namespace headroom
