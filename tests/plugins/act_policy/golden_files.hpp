// The golden files of the reference, and how closely they are met.
#pragma once

#include "../models/golden_files.hpp"
#include "../models/model_under_test.hpp"

namespace headroom {

inline const std::string golden_folder = "act_policy";

// README: forward values within 2e-5 and 1e-5 of the expected.
inline void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what,
                         double absolute = 2e-5, double relative = 1e-5) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const at::Tensor wanted = expected.to(at::kDouble);
  const at::Tensor beyond = (actual.detach().to(at::kDouble) - wanted).abs() - wanted.abs() * relative;
  EXPECT_LE(beyond.max().item<double>(), absolute) << what;
}

// README: gradients within 1e-5 of the tensor's largest, and 1e-7.
inline void expect_close_gradient(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  const double largest = expected.abs().max().item<double>();
  expect_close(actual, expected, what, 1e-5 * largest + 1e-7, 0.0);
}

}  // namespace headroom
