// Norms of gradients and weights that take next to no memory, and clipping by them. [compute]
#pragma once

#include <ATen/core/Tensor.h>
#include <span>
#include <vector>

namespace headroom {

// The L2 norm of each, in float64. Takes at most 64 KiB at a time.
std::vector<double> norm_of_each(const std::vector<at::Tensor>& tensors);

// Global L2 norm of the gradients in float64; scales them by max_norm / norm where it is larger (max_norm 0: never).
// Returns the norm before, which is not finite when any gradient is not.
double clip_gradients(std::span<const at::Tensor> gradients, double max_norm);

}  // namespace headroom
