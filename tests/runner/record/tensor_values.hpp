// Tensors of a safetensors file as numbers.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "record/safetensors.hpp"

namespace headroom {

template <class T, class Bytes>
std::vector<T> as_values(const Bytes& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(result.data()), bytes.data(), bytes.size());
  return result;
}

template <class T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const TensorBytes* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error("no tensor " + name);
  return as_values<T>(tensor->data);
}

}  // namespace headroom
