// What a pickle of PyTorch's may call: the few functions that make a dictionary, a storage or a tensor.
#pragma once

#include <cstdint>
#include <string>

#include "record/torch_pickle.hpp"

namespace headroom {

// BadTorchFile for what is no part of a state dictionary: "<what>; only dictionaries of tensors are read: ...".
[[noreturn]] void refuse_pickle(const std::string& what);
[[noreturn]] void malformed_pickle();

// In quotes, for sentences.
std::string shown_name(const std::string& name);

class TorchMakers {
 public:
  explicit TorchMakers(Pickle& pickle) : pickle_(&pickle) {}

  static bool knows(const std::string& function);

  // Each returns the new node's number.
  uint32_t call(uint32_t function, uint32_t arguments);
  uint32_t storage(uint32_t persistent_id);

 private:
  const Pickle::Node& at(const Pickle::Node& tuple, std::size_t i, Pickle::Kind kind) const;
  std::vector<int64_t> numbers(const Pickle::Node& tuple) const;
  uint32_t tensor(const Pickle::Node& arguments);

  Pickle* pickle_;
};

}  // namespace headroom
