#include "train/tensor_file.hpp"

#include <ATen/DLConvertor.h>

#include "error.hpp"

namespace headroom {

void TensorFile::add(const std::string& name, const at::Tensor& tensor) {
  tensors_.emplace_back(name, tensor.detach().cpu().contiguous());
}

void TensorFile::write(const std::filesystem::path& path) const {
  std::vector<TensorBytes> bytes;
  for (const auto& [name, tensor] : tensors_) {
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    bytes.push_back({name, at::getDLDataType(tensor), tensor.sizes().vec(), {data, tensor.nbytes()}});
  }
  write_whole(path, bytes);
}

void write_whole(const std::filesystem::path& path, std::span<const TensorBytes> tensors) {
  std::filesystem::path partial = path;
  partial += ".partial";
  std::error_code error, ignored;
  try {
    write_safetensors(partial, tensors);
  } catch (const Error&) {
    std::filesystem::remove(partial, ignored);
    throw;
  }
  std::filesystem::rename(partial, path, error);
  if (!error) return;
  std::filesystem::remove(partial, ignored);
  throw Error(Exit::cannot_write, "record", path.string() + " cannot be written: " + error.message());
}

}  // namespace headroom
