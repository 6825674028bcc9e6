// The golden files of the reference: tests/golden/spike_vrt, or ../shared beside the source tree.
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
  for (const auto& folder : {source / "tests/golden/spike_vrt", source.parent_path() / "shared/golden/spike_vrt"}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  return std::nullopt;
}

// Leaves the test, with the reason, where the file is not.
#define GOLDEN_OR_SKIP(tensors, name)                                                                    \
  const auto tensors##_path = golden_file(name);                                                         \
  if (!tensors##_path) GTEST_SKIP() << name << " is in ../shared, which is not beside this source tree"; \
  const Tensors tensors = load(*tensors##_path)

// README's limits, all relative to the largest value of the expected tensor.
constexpr double kOperation = 1e-5, kOutput = 5e-5, kGradient = 5e-4;

inline void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what,
                         double limit = kOperation) {
  ASSERT_TRUE(actual.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const at::Tensor wanted = expected.to(at::kDouble);
  const double largest = wanted.abs().max().item<double>();
  EXPECT_LE((actual.detach().to(at::kDouble) - wanted).abs().max().item<double>() / largest, limit) << what;
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
