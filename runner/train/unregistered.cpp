#include "train/unregistered.hpp"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <unordered_set>

namespace headroom {

UnregisteredTensors::UnregisteredTensors(std::span<Parameter* const> trainable) : trainable_(trainable) {}

void UnregisteredTensors::look(const at::Tensor& loss_sum) {
  leaves_.clear();
  std::unordered_set<const void*> known;
  for (const Parameter* parameter : trainable_) known.insert(parameter->tensor->unsafeGetTensorImpl());
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> open{loss_sum.grad_fn().get()};
  while (!open.empty()) {
    const torch::autograd::Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
    const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    if (leaf == nullptr || known.contains(leaf->variable.unsafeGetTensorImpl())) continue;
    leaves_.push_back(
        {c10::weak_intrusive_ptr<c10::TensorImpl>(leaf->variable.getIntrusivePtr()), c10::str(leaf->variable.sizes())});
  }
}

std::string UnregisteredTensors::shape_of_survivor() const {
  for (const Leaf& leaf : leaves_) {
    if (!leaf.tensor.expired()) return leaf.shape;
  }
  return "";
}

}  // namespace headroom
