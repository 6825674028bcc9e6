// The golden files of the reference, and how closely they are met.
#pragma once

#include "../models/golden_files.hpp"
#include "../models/model_under_test.hpp"

namespace headroom {

inline const std::string golden_folder = "spike_vrt";

// README's limits, all relative to the largest value of the expected tensor.
constexpr double kOperation = 1e-5, kOutput = 5e-5, kGradient = 5e-4;

inline void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what,
                         double limit = kOperation) {
  ASSERT_TRUE(actual.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  EXPECT_LE(relative_error(actual, expected), limit) << what;
}

// A parameter whose gradient goes through places in images: it jumps where a place passes a whole pixel, and of a
// clip's many places rounding in float32 takes some over. The reference's own float32 is 7.3e-4 from float64 there;
// against float64 itself such gradients are held to 1e-9, and the kernels that make them to 1e-5 in float32 between the
// pixels.
constexpr double kPlaces = 2e-3;
inline bool feeds_places(const std::string& parameter) {
  return parameter.find("spynet") != std::string::npos || parameter.find("conv_offset") != std::string::npos;
}

// Copies the golden tensors prefix + name over a module's parameters and buffers of that name.
inline void load_into(torch::nn::Module& module, const Tensors& golden, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) item.value().copy_(golden.at(prefix + item.key()));
  for (auto& item : module.named_buffers()) item.value().copy_(golden.at(prefix + item.key()));
}

// A copy that asks for its gradient.
inline at::Tensor leaf(const at::Tensor& value) { return value.clone().requires_grad_(true); }

}  // namespace headroom
