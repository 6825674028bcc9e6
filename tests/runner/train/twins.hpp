// Two copies of the same tensors: ours behind a model's parameters, theirs for LibTorch.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

class Twins {
 public:
  Twins() {
    torch::manual_seed(1);
    for (const auto& shape : std::vector<std::vector<int64_t>>{{4, 3}, {4}, {2, 2, 5}}) {
      ours.push_back(torch::randn(shape).requires_grad_(true));
      theirs.push_back(ours.back().detach().clone().requires_grad_(true));
    }
    for (size_t i = 0; i < ours.size(); ++i)
      parameters.push_back({.name = "p" + std::to_string(i), .group = "", .tensor = &ours[i]});
  }

  // Equal gradients on both sides, other ones every step.
  void give_gradients() {
    for (size_t i = 0; i < ours.size(); ++i) {
      const at::Tensor gradient = torch::randn(ours[i].sizes());
      ours[i].mutable_grad() = gradient.clone();
      theirs[i].mutable_grad() = gradient.clone();
    }
  }

  double difference() const {
    double largest = 0.0;
    for (size_t i = 0; i < ours.size(); ++i)
      largest = std::max(largest, (ours[i] - theirs[i]).abs().max().item<double>());
    return largest;
  }

  std::vector<at::Tensor> ours, theirs;
  std::vector<Parameter> parameters;
};

}  // namespace headroom
