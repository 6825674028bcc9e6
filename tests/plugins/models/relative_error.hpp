#pragma once

#include <cmath>
#include <torch/torch.h>

namespace headroom {

// The largest difference, relative to the largest value expected.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return INFINITY;
  const at::Tensor wanted = expected.detach().to(at::kDouble);
  const double scale = wanted.abs().max().item<double>();
  const double error = (actual.detach().to(at::kDouble) - wanted).abs().max().item<double>();
  return scale > 0.0 ? error / scale : error;
}

}  // namespace headroom
