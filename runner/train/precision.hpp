// train.precision as the run computes. bf16 and fp16 are mixed precision (Micikevicius et al. 2018, "Mixed Precision
// Training"; torch.autocast): parameters, gradients and the optimizer stay float32, matrix products and convolutions
// and what they keep for backward are narrow.
#pragma once

#include <optional>
#include <string>
#include <torch/torch.h>

namespace headroom {

at::ScalarType parameter_dtype(const std::string& precision);
std::optional<at::ScalarType> autocast_dtype(const std::string& precision);
bool scales_loss(const std::string& precision);  // see LossScale

// A line on a device that computes it no faster than float32; "" where it does.
std::string slow_precision(const std::string& precision, at::Device device);

}  // namespace headroom
