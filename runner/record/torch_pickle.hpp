// The pickle of a PyTorch state dictionary, read without running anything: a machine that knows dictionaries, lists,
// plain values and PyTorch's two ways of making a tensor, and refuses all else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headroom/dlpack.h"
#include "record/torch_zip.hpp"

namespace headroom {

// A tensor as the pickle tells it: elements of a storage, which is an entry of the archive.
struct PickledTensor {
  std::string storage;  // the entry's name below data/
  DLDataType dtype{};
  uint64_t offset = 0;  // in elements, as the strides
  std::vector<int64_t> shape = {}, stride = {};
};

// Nodes are numbered, not linked: cycles, deep nesting and sharing cost nothing.
struct Pickle {
  enum class Kind { none, boolean, integer, real, string, tuple, list, dictionary, tensor, storage, function };
  struct Node {
    Kind kind = Kind::none;
    int64_t integer = 0;               // of a whole number or truth value
    std::string text = {};             // of a string; a function's name; a storage's entry
    std::vector<uint32_t> items = {};  // a dictionary's: key, value, key, value, ...
    uint32_t tensor = 0;               // its number in tensors
    DLDataType dtype = {};             // of a storage
  };
  std::vector<Node> nodes;
  std::vector<PickledTensor> tensors;
  uint32_t root = 0;

  const Node& operator[](uint32_t number) const { return nodes[number]; }
  uint32_t add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
};

// BadTorchFile naming what the pickle asks for that is no part of a state dictionary.
Pickle read_pickle(std::span<const std::byte> bytes);

// What a pickle of PyTorch's may call: the few functions that make a dictionary, a storage or a tensor.

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
