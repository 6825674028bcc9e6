// The golden files of the reference: tests/golden/act_policy, or ../shared beside the source tree.
#pragma once

#include <ATen/DLConvertor.h>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <torch/torch.h>

#include "record/safetensors.hpp"

namespace headroom {

using Tensors = std::map<std::string, at::Tensor>;

inline Tensors load(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  Tensors tensors;
  for (const TensorBytes& bytes : file.tensors()) {
    at::Tensor tensor = at::empty(bytes.shape, at::toScalarType(bytes.dtype));
    if (!bytes.data.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data.data(), bytes.data.size());
    tensors.emplace(bytes.name, tensor);
  }
  return tensors;
}

inline std::optional<std::filesystem::path> golden_file(const std::string& name) {
  const std::filesystem::path source(HEADROOM_SOURCE_DIR);
  for (const auto& folder : {source / "tests/golden/act_policy", source.parent_path() / "shared/golden/act_policy"}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  return std::nullopt;
}

// Leaves the test, with the reason, where the file is not.
#define GOLDEN_OR_SKIP(tensors, name)                                                                    \
  const auto tensors##_path = golden_file(name);                                                         \
  if (!tensors##_path) GTEST_SKIP() << name << " is in ../shared, which is not beside this source tree"; \
  const Tensors tensors = load(*tensors##_path)

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
