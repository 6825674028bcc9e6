// The leaves of an autograd graph: the tensors that backward() of a loss gives gradients to. Needs LibTorch.
#pragma once

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/torch.h>
#include <unordered_set>
#include <vector>

namespace headroom::sdk {

// The tensors, each once, to which backward() of `output` would add a gradient; none where it has no graph. [any]
inline std::vector<at::Tensor> graph_leaves(const at::Tensor& output) {
  std::vector<at::Tensor> leaves;
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> open{output.grad_fn().get()};
  while (!open.empty()) {
    const torch::autograd::Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
    const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    if (leaf != nullptr) leaves.push_back(leaf->variable);
  }
  return leaves;
}

}  // namespace headroom::sdk
