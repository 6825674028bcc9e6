// VRT, a video restoration transformer: what comes out is what went in, and what the network adds to it.
#pragma once

#include <functional>
#include <memory>
#include <torch/torch.h>
#include <vector>

#include "flows.hpp"
#include "stage.hpp"
#include "vrt_shape.hpp"

namespace headroom {

// What another sensor has to say, where there is one.
struct Guidance {
  at::Tensor features;  // added to the first features; undefined: nothing
  // The output of stage i = 0 ... 3, [n, frame, y, x, channel], with it taken in; empty: as it is.
  std::function<at::Tensor(std::size_t stage, const at::Tensor& features)> fuse;
};

// A group of self attention behind the stages.
class Reconstruction : public torch::nn::Module {
 public:
  Reconstruction(const VrtShape& shape, std::size_t index);
  at::Tensor forward(const Pass& pass, const at::Tensor& x) const;

 private:
  std::size_t index_;
  std::shared_ptr<TmsaGroup> residual_group_;
  std::shared_ptr<Linear> linear_;
};

class Vrt : public torch::nn::Module {
 public:
  explicit Vrt(const VrtShape& shape);

  // frames [n, frame, channel, y, x], colours in [0, 1] first.
  Flows flows(const at::Tensor& frames) const;
  // [n, frame, 3, y, x]. Rows and columns must be multiples of 8, an eighth of them no less than a window.
  at::Tensor forward(const Pass& pass, const at::Tensor& frames, const Flows& flows, const Guidance& guidance) const;
  // With every frame's neighbours beside it: what the first convolution sees, [n, frame, y, x, 9 * channel].
  static at::Tensor with_neighbours(const at::Tensor& frames, const Flows& flows);

 private:
  at::Tensor body(const Pass& pass, const at::Tensor& features, const Flows& flows, const Guidance& guidance) const;

  VrtShape shape_;
  std::shared_ptr<SpyNet> spynet_;
  std::shared_ptr<FrameConv> conv_first_, conv_last_;
  std::vector<std::shared_ptr<Stage>> stages_;
  std::shared_ptr<LayerNorm> reconstruction_norm_, norm_;
  std::shared_ptr<Linear> reconstruction_linear_, conv_after_body_;
  std::vector<std::shared_ptr<Reconstruction>> reconstructions_;
};

}  // namespace headroom
