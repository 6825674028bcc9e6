#include <optional>

#include "memory/readable.hpp"
#include "record/torch_pickle.hpp"

namespace headroom {

namespace {

using Kind = Pickle::Kind;
using Node = Pickle::Node;

struct StorageType {
  const char* name;
  DLDataType dtype;
};
constexpr StorageType storage_types[] = {
    {"torch.DoubleStorage", {kDLFloat, 64, 1}}, {"torch.FloatStorage", {kDLFloat, 32, 1}},
    {"torch.HalfStorage", {kDLFloat, 16, 1}},   {"torch.BFloat16Storage", {kDLBfloat, 16, 1}},
    {"torch.LongStorage", {kDLInt, 64, 1}},     {"torch.IntStorage", {kDLInt, 32, 1}},
    {"torch.ShortStorage", {kDLInt, 16, 1}},    {"torch.CharStorage", {kDLInt, 8, 1}},
    {"torch.ByteStorage", {kDLUInt, 8, 1}},     {"torch.BoolStorage", {kDLBool, 8, 1}},
};
// With the storage types, all that a pickle may name.
constexpr const char *ordered = "collections.OrderedDict", *tensor_v2 = "torch._utils._rebuild_tensor_v2",
                     *parameter = "torch._utils._rebuild_parameter";

std::optional<DLDataType> storage_dtype(const std::string& name) {
  for (const StorageType& type : storage_types) {
    if (name == type.name) return type.dtype;
  }
  return std::nullopt;
}

}  // namespace

void refuse_pickle(const std::string& what) {
  throw BadTorchFile(what + "; only dictionaries of tensors are read: save the model's state_dict()");
}

void malformed_pickle() { throw BadTorchFile("is damaged: its pickle does not hold together"); }

std::string shown_name(const std::string& name) { return "'" + printable(name, 100) + "'"; }

bool TorchMakers::knows(const std::string& function) {
  return function == ordered || function == tensor_v2 || function == parameter || storage_dtype(function);
}

const Node& TorchMakers::at(const Node& tuple, std::size_t i, Kind kind) const {
  if (i >= tuple.items.size()) malformed_pickle();
  const Node& item = (*pickle_)[tuple.items[i]];
  if (item.kind != kind) malformed_pickle();
  return item;
}

// Of shapes and strides, where nothing is negative.
std::vector<int64_t> TorchMakers::numbers(const Node& tuple) const {
  std::vector<int64_t> values;
  for (std::size_t i = 0; i < tuple.items.size(); ++i) {
    values.push_back(at(tuple, i, Kind::integer).integer);
    if (values.back() < 0) malformed_pickle();
  }
  return values;
}

// ("storage", type, entry, place, elements)
// The place is a device's name, which does not matter here.
uint32_t TorchMakers::storage(uint32_t persistent_id) {
  const Node& told = (*pickle_)[persistent_id];
  if (told.kind != Kind::tuple || at(told, 0, Kind::string).text != "storage") malformed_pickle();
  const auto dtype = storage_dtype(at(told, 1, Kind::function).text);
  at(told, 4, Kind::integer);  // the entry's own size counts
  if (!dtype) malformed_pickle();
  return pickle_->add({.kind = Kind::storage, .text = at(told, 2, Kind::string).text, .dtype = *dtype});
}

// (storage, offset, shape, stride, ...)
// What follows, requires_grad and hooks, is for training.
uint32_t TorchMakers::tensor(const Node& arguments) {
  const Node& storage = at(arguments, 0, Kind::storage);
  const int64_t offset = at(arguments, 1, Kind::integer).integer;
  PickledTensor made{storage.text, storage.dtype, static_cast<uint64_t>(offset), numbers(at(arguments, 2, Kind::tuple)),
                     numbers(at(arguments, 3, Kind::tuple))};
  if (offset < 0 || made.shape.size() != made.stride.size()) malformed_pickle();
  pickle_->tensors.push_back(std::move(made));
  return pickle_->add({.kind = Kind::tensor, .tensor = static_cast<uint32_t>(pickle_->tensors.size() - 1)});
}

uint32_t TorchMakers::call(uint32_t function, uint32_t arguments) {
  if ((*pickle_)[arguments].kind != Kind::tuple || (*pickle_)[function].kind != Kind::function) malformed_pickle();
  // Copies, because add() moves the nodes.
  const Node told = (*pickle_)[arguments];
  const std::string name = (*pickle_)[function].text;
  if (name == ordered && told.items.empty()) return pickle_->add({.kind = Kind::dictionary});
  if (name == tensor_v2) return tensor(told);
  if (name == parameter) {
    at(told, 0, Kind::tensor);
    return told.items[0];
  }
  refuse_pickle("calls " + shown_name(name) + " in a way that makes no tensor");
}

}  // namespace headroom
