// Norms of gradients and weights that take next to no memory, and clipping by them. [compute]
#pragma once

#include <ATen/core/Tensor.h>
#include <span>
#include <vector>

namespace headroom {

// The L2 norm of each, in float64. Takes at most 64 KiB at a time.
std::vector<double> norm_of_each(const std::vector<at::Tensor>& tensors);

// Bounds of gradients; 0: none.
struct Clipping {
  double value = 0.0;  // of each element, both ways; before the norm
  double norm = 0.0;   // global L2 norm, in float64; where it is larger all are scaled
};

// Returns the norm before anything was clipped. Where it is not finite some gradient is not, and all stay as they are.
double clip_gradients(std::span<const at::Tensor> gradients, const Clipping& clipping);

}  // namespace headroom
