#include "train/init.hpp"

#include <fnmatch.h>
#include <map>

#include "config/digest.hpp"
#include "infer/stored_tensor.hpp"
#include "record/mapped_file.hpp"
#include "record/safetensors.hpp"

namespace headroom {

namespace {

std::filesystem::path weights_file(const std::filesystem::path& from) {
  std::error_code error;  // what cannot be looked at is told when it is opened
  return std::filesystem::is_directory(from, error) ? from / "model.safetensors" : from;
}

// The name a stored tensor has in the model: the first matching prefix of init.map is replaced.
std::string mapped(const std::string& name, const InitSection& init) {
  for (const auto& [from, to] : init.map) {
    if (name.starts_with(from)) return to + name.substr(from.size());
  }
  return name;
}

bool ignored(const std::string& name, const InitSection& init) {
  for (const std::string& pattern : init.ignore) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

void listed(std::string& text, const std::string& name, size_t& count) {
  if (count++ < 5) text += (text.empty() ? "'" : ", '") + name + "'";
}

}  // namespace

std::string initialise_from(const InitSection& init, Model& model) {
  if (init.from.empty()) return "";
  const SafetensorsFile file(weights_file(init.from));
  std::map<std::string, const TensorBytes*> stored;
  // Of two tensors that init.map gives one name the first counts.
  for (const TensorBytes& tensor : file.tensors()) stored.emplace(mapped(tensor.name, init), &tensor);
  size_t left = 0, wrong = 0;
  std::string problems;
  std::vector<std::pair<Parameter*, const TensorBytes*>> matched;
  for (Parameter& parameter : model.parameters()) {
    // The model computes derived tensors from its options: no checkpoint has them.
    if (parameter.kind == HR_DERIVED) continue;
    if (ignored(parameter.name, init)) {
      ++left;
      continue;
    }
    const auto found = stored.find(parameter.name);
    if (found == stored.end() || found->second->shape != parameter.tensor->sizes().vec()) {
      listed(problems, parameter.name, wrong);
      continue;
    }
    matched.emplace_back(&parameter, found->second);
    // What remains is reported as unused.
    stored.erase(found);
  }
  // A tensor left as it was drawn would train on without a word: init.ignore has to name it.
  if (wrong > 0 || matched.empty()) {
    throw Error(Exit::bad_input, "init",
                file.path().string() + ": " + std::to_string(matched.size()) + " tensors of the model matched; " +
                    std::to_string(wrong) + " were not found with their shape (" + problems +
                    (wrong > 5 ? ", ..." : "") + "): rename them with init.map or list them in init.ignore");
  }
  // Shapes are known to be equal, which is all that can be wrong.
  for (const auto& [parameter, bytes] : matched) copy_stored(bytes, parameter->name, *parameter->tensor);
  return std::to_string(matched.size()) + " tensors from " + file.path().string() + ", " + std::to_string(left) +
         " ignored, " + std::to_string(stored.size()) + " in the file unused";
}

std::string start_id(const InitSection& init) {
  if (init.from.empty()) return "";
  Digest digest;
  // The number divides the entries of map from those of ignore.
  digest.add(std::to_string(init.map.size()));
  for (const auto& [from, to] : init.map) digest.add(from).add(to);
  for (const std::string& pattern : init.ignore) digest.add(pattern);
  const SafetensorsFile file(weights_file(init.from));
  for (const TensorBytes& tensor : file.tensors()) {
    const auto& [code, bits, lanes] = tensor.dtype;
    digest.add(tensor.name).add(std::to_string(code) + "." + std::to_string(bits) + "." + std::to_string(lanes));
    for (const int64_t extent : tensor.shape) digest.add(std::to_string(extent));
    digest.add({reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
    drop_pages(tensor.data);
  }
  return digest.hex();
}

}  // namespace headroom
