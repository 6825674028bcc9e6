#pragma once

#include <torch/torch.h>

namespace headroom {

// The largest error, by the largest expected value; `expected` is float64.
inline double relative_error(const at::Tensor& value, const at::Tensor& expected) {
  return ((value.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
}

}  // namespace headroom
