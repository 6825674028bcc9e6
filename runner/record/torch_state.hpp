// A state dictionary written by torch.save (PyTorch 1.6 and newer), as tensors that can be written elsewhere. Nothing
// of the file is run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/mapped_file.hpp"
#include "record/safetensors.hpp"

namespace headroom {

class TorchStateFile {
 public:
  // `key`: of the dictionary of tensors inside the file's own, with dots between levels; "": the file's own. Names of
  // nested dictionaries are joined by dots. Error(bad_input) for anything that is no dictionary of tensors, or damaged.
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
