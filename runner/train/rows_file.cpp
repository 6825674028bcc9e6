#include "train/rows_file.hpp"

#include <ATen/DLConvertor.h>

#include "arrays/convert.hpp"
#include "error.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "record/mapped_file.hpp"
#include "train/tensor_file.hpp"

namespace headroom {

namespace fs = std::filesystem;

RowsFile::RowsFile(fs::path path, std::vector<std::string> names) : path_(std::move(path)) {
  for (std::string& name : names) {
    fs::path rows = path_;
    rows += ".rows" + std::to_string(outputs_.size());
    auto file = std::make_unique<OutputFile>(rows);
    outputs_.push_back({std::move(rows), std::move(file), {.name = std::move(name), .shape = {}, .data = {}}});
  }
}

RowsFile::~RowsFile() {
  std::error_code ignored;
  for (const Output& output : outputs_) fs::remove(output.path, ignored);
}

void RowsFile::append(const Outputs& outputs) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TensorBytes& told = outputs_[i].told;
    std::vector<int64_t> shape = outputs[i].sizes().vec();
    const DLDataType dtype = at::getDLDataType(outputs[i]);
    if (shape.empty())
      throw Error(Exit::plugin, "predict", "output '" + told.name + "' is a single number; a row a sample is needed");
    const int64_t rows = shape.front();
    if (told.shape.empty()) {
      told.dtype = dtype;
      told.shape = shape;
      told.shape.front() = 0;
    }
    shape.front() = told.shape.front();
    if (shape != told.shape || !same_dtype(dtype, told.dtype)) {
      throw Error(Exit::plugin, "predict",
                  "output '" + told.name + "' has rows of " + sdk::shape_text(shape) + " after others of " +
                      sdk::shape_text(told.shape) + ": a row must not depend on how many samples are asked at once");
    }
    told.shape.front() += rows;
    outputs_[i].file->write({static_cast<const std::byte*>(outputs[i].const_data_ptr()), outputs[i].nbytes()});
  }
}

std::vector<TensorBytes> RowsFile::write() {
  std::vector<MappedFile> maps;
  std::vector<TensorBytes> tensors;
  for (Output& output : outputs_) {
    output.file.reset();
    if (output.told.shape.empty()) continue;
    maps.emplace_back(output.path, "predict");
    tensors.push_back(output.told);
    tensors.back().data = maps.back().bytes();
  }
  write_whole(path_, tensors);
  for (TensorBytes& tensor : tensors) tensor.data = {};
  return tensors;
}

}  // namespace headroom
