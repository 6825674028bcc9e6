// A state dictionary written by torch.save (PyTorch 1.6 and newer), read as tensors. Nothing in the file is run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/mapped_file.hpp"
#include "record/safetensors.hpp"

namespace headroom {

class TorchStateFile {
 public:
  // `key`: the dictionary of tensors within the file's top-level dictionary, with dots between levels; "": the
  // top-level one. Names in nested dictionaries are joined with dots. Error(bad_input) where it is not a dictionary of
  // tensors, or damaged.
  explicit TorchStateFile(const std::filesystem::path& path, const std::string& key = "");
  TorchStateFile(TorchStateFile&&) noexcept = default;

  // In the dictionary's order. Data is contiguous; spans live as long as the object.
  const std::vector<TensorBytes>& tensors() const { return tensors_; }

 private:
  MappedFile map_;
  std::vector<std::vector<std::byte>> copies_;  // of tensors that lie in their storage with strides
  std::vector<TensorBytes> tensors_;
};

}  // namespace headroom
