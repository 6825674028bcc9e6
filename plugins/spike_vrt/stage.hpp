// One scale of the network: reshaping, mutual and self attention, parallel warping.
#pragma once

#include <memory>
#include <torch/torch.h>

#include "alignment.hpp"
#include "flows.hpp"
#include "tmsa.hpp"
#include "vrt_shape.hpp"

namespace headroom {

class Stage : public torch::nn::Module {
 public:
  Stage(const VrtShape& shape, std::size_t index);
  // x [n, frame, y, x, channel] of the stage before. The result lies at this stage's scale.
  at::Tensor forward(const Pass& pass, const at::Tensor& x, const Flows& flows) const;

 private:
  at::Tensor reshaped(const at::Tensor& x) const;

  std::size_t index_, level_;
  std::shared_ptr<LayerNorm> reshape_norm_;
  std::shared_ptr<Linear> reshape_linear_, linear1_, linear2_;
  std::shared_ptr<TmsaGroup> residual_group1_, residual_group2_;
  std::shared_ptr<Alignment> pa_deform_;
  std::shared_ptr<GatedMlp> pa_fuse_;
};

}  // namespace headroom
