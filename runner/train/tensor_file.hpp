// Tensors on their way into a safetensors file: those of a TensorFile wait in memory, those of a RowsFile on the disk.
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

// A model's outputs over more samples than memory holds: on the disk as they come, then one safetensors file.
class RowsFile {
 public:
  // `path` is the file to be; until then each output has one without a name in its folder, which is gone however this
  // process ends. Error(cannot_write).
  RowsFile(std::filesystem::path path, std::vector<std::string> names);

  // A tensor for each name, on the CPU and contiguous, of one sample a row. Error(cannot_write); Error(plugin) where
  // an output's rows are not like those before.
  void append(const Outputs& outputs);

  // The file appears whole or not at all. Returns the outputs that have rows, without their bytes. Nothing is appended
  // from here on.
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
