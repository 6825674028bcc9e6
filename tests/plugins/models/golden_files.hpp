// Golden files of a reference implementation: tests/golden/<model>, or ../shared beside the source tree. A model's own
// header names its folder (golden_folder) and its limits.
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

inline std::optional<std::filesystem::path> golden_file(const std::string& model, const std::string& name) {
  const std::filesystem::path source(HEADROOM_SOURCE_DIR);
  for (const auto& golden : {source / "tests/golden", source.parent_path() / "shared/golden"}) {
    if (std::filesystem::exists(golden / model / name)) return golden / model / name;
  }
  return std::nullopt;
}

// Leaves the test, with the reason, where the file is not.
#define GOLDEN_OR_SKIP(tensors, name)                                                                    \
  const auto tensors##_path = golden_file(golden_folder, name);                                          \
  if (!tensors##_path) GTEST_SKIP() << name << " is in ../shared, which is not beside this source tree"; \
  const Tensors tensors = load(*tensors##_path)

}  // namespace headroom
