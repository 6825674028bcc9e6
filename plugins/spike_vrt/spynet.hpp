// SpyNet: optical flow from coarse to fine, in six levels of which the network uses the four finest.
#pragma once

#include <array>
#include <memory>
#include <torch/torch.h>
#include <vector>

#include "layers.hpp"

namespace headroom {

class SpyNet : public torch::nn::Module {
 public:
  static constexpr int64_t kLevels = 6, kUsedLevels = 4;
  // Finest first; [n, 2, y / 2^level, x / 2^level], in pixels of that level.
  using Flow = std::array<at::Tensor, kUsedLevels>;
  using Pyramid = std::array<at::Tensor, kLevels>;  // coarsest first

  SpyNet();

  // images [n, 3, y, x] in [0, 1], at least 33 pixels high and wide, scaled up to multiples of 32.
  Pyramid pyramid(const at::Tensor& images) const;
  // Where each pixel of `reference` is found in `support`; height and width are the images' own.
  Flow forward(const Pyramid& reference, const Pyramid& support, int64_t height, int64_t width) const;

 private:
  using Refinement = std::array<std::shared_ptr<Conv2d>, 5>;

  std::array<Refinement, kLevels> refinements_;
  at::Tensor mean_, std_;
};

}  // namespace headroom
