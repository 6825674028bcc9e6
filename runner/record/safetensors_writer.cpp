#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "record/output_file.hpp"
#include "record/safetensors.hpp"
#include "record/safetensors_dtype.hpp"

namespace headroom {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::string_view metadata_key = "__metadata__";

Error misuse(const std::string& name, const std::string& what) {
  return Error(Exit::bug, "safetensors", "tensor '" + name + "' cannot be stored: " + what);
}

void check(const TensorBytes& tensor, std::set<std::string>& names) {
  if (tensor.name == metadata_key || !names.insert(tensor.name).second) {
    throw misuse(tensor.name, "the name is taken");
  }
  if (!dtype_to_safetensors(tensor.dtype)) throw misuse(tensor.name, "the format has no such element type");
  uint64_t bytes = tensor.dtype.bits / 8;
  for (int64_t size : tensor.shape) bytes *= static_cast<uint64_t>(size);
  if (bytes != tensor.data.size()) {
    throw misuse(tensor.name, "its shape asks for " + std::to_string(bytes) + " bytes, " +
                                  std::to_string(tensor.data.size()) + " were given");
  }
}

// Wide elements first: with the data at a multiple of 8, every tensor of a file written here is aligned to its
// elements.
std::vector<const TensorBytes*> in_file_order(std::span<const TensorBytes> tensors) {
  std::vector<const TensorBytes*> order;
  for (const TensorBytes& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const TensorBytes* a, const TensorBytes* b) { return a->dtype.bits > b->dtype.bits; });
  return order;
}

std::string header_text(const std::vector<const TensorBytes*>& order,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  uint64_t offset = 0;
  for (const TensorBytes* tensor : order) {
    header[tensor->name] = {{"dtype", *dtype_to_safetensors(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, offset + tensor->data.size()}}};
    offset += tensor->data.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(Exit::bug, "safetensors", "a tensor's name or the metadata is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::set<std::string> names;
  for (const TensorBytes& tensor : tensors) check(tensor, names);
  std::vector<const TensorBytes*> order = in_file_order(tensors);
  std::string header = header_text(order, metadata);

  OutputFile file(path);
  uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const TensorBytes* tensor : order) file.write(tensor->data);
  file.finish();
}

}  // namespace headroom
