// VRT and what brings the voxel into it, under the names of its checkpoints: bare where the network is VRT, "vrt." in
// front of its tensors where it has a branch beside it.
#pragma once

#include <memory>
#include <torch/torch.h>

#include "architecture.hpp"
#include "spike_branch.hpp"
#include "vrt.hpp"

namespace headroom {

class Network {
 public:
  explicit Network(const Architecture& architecture);

  torch::nn::Module& module() { return *root_; }

  // clip [n, frame, channel, y, x]: colours in [0, 1], then the voxel's bins where the fusion uses them. Restored
  // colours, [n, frame, 3, y, x].
  at::Tensor forward(const sdk::Call& call, const at::Tensor& clip);

 private:
  Fusion fusion_;
  int64_t bins_;
  WindowTables tables_;
  std::shared_ptr<torch::nn::Module> root_;
  std::shared_ptr<Vrt> vrt_;
  std::shared_ptr<FrameConv> adapter_;
  std::unique_ptr<SpikeBranch> branch_;
};

}  // namespace headroom
