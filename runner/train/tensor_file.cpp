#include "train/tensor_file.hpp"

#include <ATen/DLConvertor.h>
#include <unistd.h>

#include "arrays/convert.hpp"
#include "error.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "record/mapped_file.hpp"

namespace headroom {

void TensorFile::add(const std::string& name, const at::Tensor& tensor) {
  // safetensors holds elements in row-major order, without strides.
  tensors_.emplace_back(name, tensor.detach().cpu().contiguous());
}

void TensorFile::write(const std::filesystem::path& path) const {
  std::vector<TensorBytes> bytes;
  for (const auto& [name, tensor] : tensors_) {
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    bytes.push_back({name, at::getDLDataType(tensor), tensor.sizes().vec(), {data, tensor.nbytes()}});
  }
  write_whole_safetensors(path, bytes);
}

namespace fs = std::filesystem;

RowsFile::RowsFile(fs::path path, std::vector<std::string> names) : path_(std::move(path)) {
  for (std::string& name : names) {
    // By number: names of outputs need not be legal in file names. Of this process's own: another one may predict the
    // same at the same time.
    fs::path rows = path_;
    rows += "." + std::to_string(::getpid()) + ".rows" + std::to_string(outputs_.size());
    auto file = std::make_unique<OutputFile>(std::move(rows));
    fs::path place = file->take_name();
    outputs_.push_back({std::move(place), std::move(file), {.name = std::move(name), .shape = {}, .data = {}}});
  }
}

void RowsFile::append(const Outputs& outputs) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TensorBytes& header = outputs_[i].header;
    std::vector<int64_t> shape = outputs[i].sizes().vec();
    const DLDataType dtype = at::getDLDataType(outputs[i]);
    if (shape.empty())
      throw Error(Exit::plugin, "predict", "output '" + header.name + "' is a single number; a row a sample is needed");
    const int64_t rows = shape.front();
    if (header.shape.empty()) {
      header.dtype = dtype;
      header.shape = shape;
      // Counts the rows from here on.
      header.shape.front() = 0;
    }
    // Batches may differ in their number of rows, and in nothing else.
    shape.front() = header.shape.front();
    if (shape != header.shape || !same_dtype(dtype, header.dtype)) {
      throw Error(Exit::plugin, "predict",
                  "output '" + header.name + "' has rows of " + sdk::shape_text(shape) + " after others of " +
                      sdk::shape_text(header.shape) + ": a row must not depend on how many samples are asked at once");
    }
    header.shape.front() += rows;
    outputs_[i].file->write({static_cast<const std::byte*>(outputs[i].const_data_ptr()), outputs[i].nbytes()});
  }
}

std::vector<TensorBytes> RowsFile::write() {
  // Mapped until the file is written: the kernel pages the rows in and out, and memory stays flat.
  std::vector<MappedFile> maps;
  std::vector<TensorBytes> tensors;
  for (Output& output : outputs_) {
    if (output.header.shape.empty()) continue;
    maps.emplace_back(output.place, "predict");
    output.file.reset();
    tensors.push_back(output.header);
    tensors.back().data = maps.back().bytes();
    tensors.back().in_file = true;
  }
  write_whole_safetensors(path_, tensors);
  for (TensorBytes& tensor : tensors) tensor.data = {}, tensor.in_file = false;
  return tensors;
}

}  // namespace headroom
