// train.precision as LibTorch's types: the type of parameters and floating fields, and the type that a model computes
// in under autocast.
#pragma once

#include <optional>
#include <string>
#include <torch/torch.h>

namespace headroom {

inline at::ScalarType parameter_dtype(const std::string& precision) {
  return precision == "fp64" ? at::kDouble : at::kFloat;
}

inline std::optional<at::ScalarType> autocast_dtype(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return std::nullopt;
}

}  // namespace headroom
