#include "train/unregistered.hpp"

#include <unordered_set>

#include "headroom/sdk/graph_leaves.hpp"

namespace headroom {

UnregisteredTensors::UnregisteredTensors(std::span<Parameter* const> trainable) : trainable_(trainable) {}

void UnregisteredTensors::look(const at::Tensor& loss_sum) {
  leaves_.clear();
  std::unordered_set<const void*> known;
  for (const Parameter* parameter : trainable_) known.insert(parameter->tensor->unsafeGetTensorImpl());
  for (const at::Tensor& leaf : sdk::graph_leaves(loss_sum)) {
    if (known.contains(leaf.unsafeGetTensorImpl())) continue;
    leaves_.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(leaf.getIntrusivePtr()), c10::str(leaf.sizes())});
  }
}

std::string UnregisteredTensors::shape_of_survivor() const {
  for (const Leaf& leaf : leaves_) {
    if (!leaf.tensor.expired()) return leaf.shape;
  }
  return "";
}

}  // namespace headroom
