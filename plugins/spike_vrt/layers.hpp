// The layers the network is made of. Features are channels-last, [n, frame, y, x, channel]; convolutions see the frames
// as images, [n * frame, channel, y, x], without a copy: LibTorch takes the strides as they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <torch/torch.h>
#include <vector>

namespace headroom {

// A module that only gives others their names.
struct Names : torch::nn::Module {};

// `name` may hold dots, as in a state dictionary: the modules on the way are made where they are missing.
template <class Layer, class... Sizes>
std::shared_ptr<Layer> add_layer(torch::nn::Module& owner, const std::string& name, Sizes&&... sizes) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return owner.register_module(name, std::make_shared<Layer>(sizes...));
  const std::string first = name.substr(0, dot);
  const auto children = owner.named_children();
  const std::shared_ptr<torch::nn::Module>* found = children.find(first);
  const auto holder = found != nullptr ? *found : owner.register_module(first, std::make_shared<Names>());
  return add_layer<Layer>(*holder, name.substr(dot + 1), std::forward<Sizes>(sizes)...);
}

struct Linear : torch::nn::Module {
  Linear(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }

  at::Tensor weight, bias;
};

struct LayerNorm : torch::nn::Module {
  explicit LayerNorm(int64_t width);
  at::Tensor forward(const at::Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5); }

  at::Tensor weight, bias;
};

// Stride 1, an odd kernel, as large as its input. Images in, images out.
at::Tensor convolve(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias);

// The same as a layer.
struct Conv2d : torch::nn::Module {
  Conv2d(int64_t in, int64_t out, int64_t kernel);
  at::Tensor forward(const at::Tensor& images) const;

  at::Tensor weight, bias;
};

// A 3-D convolution that looks at one frame only: its weight is [out, in, 1, 3, 3]. Features in, features out.
struct FrameConv : torch::nn::Module {
  FrameConv(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& features) const;

  at::Tensor weight, bias;
};

// Three frames, 3 x 3 pixels. [n, channel, frame, y, x].
struct VolumeConv : torch::nn::Module {
  VolumeConv(int64_t in, int64_t out, int64_t stride);  // of y and x
  at::Tensor forward(const at::Tensor& volume) const;

  at::Tensor weight, bias;
  int64_t stride;
};

// [n, frame, y, x, channel] <-> [n * frame, channel, y, x]; views both.
at::Tensor images_of(const at::Tensor& features);
at::Tensor features_of(const at::Tensor& images, int64_t batch);

}  // namespace headroom
