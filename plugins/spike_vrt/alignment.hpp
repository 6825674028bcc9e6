// Parallel warping: every frame's neighbours brought to its place by deformable convolution along the flow.
#pragma once

#include <array>
#include <memory>
#include <torch/torch.h>
#include <vector>

#include "attention.hpp"
#include "layers.hpp"

namespace headroom {

struct AlignmentShape {
  int64_t neighbours = 1;  // seen on each side
  int64_t deformable_groups = 16;
  double reach = 10.0;  // pixels an offset may lie beside the flow
};

// Images that are brought to the place of others.
struct Sources {
  TensorList images;  // of each neighbour, [n, C, y, x]
  TensorList flows;   // to it, [n, 2, y, x]
};

// current [n, C, y, x]. parameters: weight, bias, conv_offset.{0, 2, 4, 6}.{weight, bias}. [n, C, y, x]
at::Tensor align(const Sources& sources, const at::Tensor& current, TensorSpan parameters, const AlignmentShape& shape);

// What both directions bring to every frame of x [n, frame, y, x, C]; zeros where there is no neighbour at all.
// backward[j], forward[j] [n, frames - j - 1, 2, y, x] as in Flows, at the level of x. [n, frame, y, x, 2 C]
at::Tensor warp_parallel(const at::Tensor& x, TensorSpan backward, TensorSpan forward, TensorSpan parameters,
                         const AlignmentShape& shape);

// The parameters of align().
class Alignment : public torch::nn::Module {
 public:
  Alignment(int64_t channels, const AlignmentShape& shape);
  TensorList parameter_list() const;
  const AlignmentShape& shape() const { return shape_; }

 private:
  AlignmentShape shape_;
  at::Tensor weight_, bias_;
  std::array<std::shared_ptr<Conv2d>, 4> conv_offset_;
};

}  // namespace headroom
