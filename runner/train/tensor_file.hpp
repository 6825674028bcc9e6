// Named tensors on their way into a safetensors file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "record/safetensors.hpp"

namespace headroom {

// The file appears whole or not at all. Error(cannot_write).
void write_whole(const std::filesystem::path& path, std::span<const TensorBytes> tensors);

class TensorFile {
 public:
  void add(const std::string& name, const at::Tensor& tensor);  // from any device
  std::size_t size() const { return tensors_.size(); }
  void write(const std::filesystem::path& path) const;  // as write_whole()

 private:
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

}  // namespace headroom
