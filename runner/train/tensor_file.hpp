// Collects tensors for a safetensors file: a TensorFile keeps them in memory, a RowsFile on the disk.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "record/output_file.hpp"
#include "record/safetensors.hpp"
#include "train/predict_pass.hpp"

namespace headroom {

// Holds its tensors on the CPU until they are written.
class TensorFile {
 public:
  void add(const std::string& name, const at::Tensor& tensor);  // from any device
  std::size_t size() const { return tensors_.size(); }
  void write(const std::filesystem::path& path) const;  // as write_whole_safetensors()

 private:
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

// A model's outputs over more samples than fit into memory: appended on the disk, then combined into one safetensors
// file.
class RowsFile {
 public:
  // `path` is the final file. Until write(), each output has an unnamed file in the same folder, which disappears
  // however this process ends. Error(cannot_write).
  RowsFile(std::filesystem::path path, std::vector<std::string> names);

  // Appends a tensor for each name, on the CPU and contiguous, with one row for each sample. Error(cannot_write);
  // Error(plugin) where the rows of an output differ in shape or type from earlier ones.
  void append(const Outputs& outputs);

  // Writes the file, whole or not at all. Returns the outputs that have rows, without their bytes. Nothing may be
  // appended afterwards.
  std::vector<TensorBytes> write();

 private:
  struct Output {
    std::filesystem::path place;  // OutputFile::take_name()
    std::unique_ptr<OutputFile> file;
    TensorBytes header;  // without bytes
  };
  std::filesystem::path path_;
  std::vector<Output> outputs_;
};

}  // namespace headroom
