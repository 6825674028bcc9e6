// The tensors of a pickled dictionary by name.
#pragma once

#include <string>
#include <vector>

#include "record/torch_pickle.hpp"

namespace headroom {

struct NamedTensor {
  std::string name;             // of nested dictionaries joined by dots; UTF-8
  const PickledTensor* tensor;  // lives with the pickle
};

// In the dictionary's order; `key` as TorchStateFile has it. BadTorchFile naming what is no tensor, and which
// dictionaries could be meant.
std::vector<NamedTensor> named_tensors(const Pickle& pickle, const std::string& key);

}  // namespace headroom
