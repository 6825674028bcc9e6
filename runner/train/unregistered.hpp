// Finds tensors that a loss depends on, that require gradients and that are no parameters of the model: a submodule
// that was not registered, one made in the first step, a parameter that was replaced. The optimizer would never update
// them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// [compute]
class UnregisteredTensors {
 public:
  explicit UnregisteredTensors(std::span<Parameter* const> trainable);

  // Walks the graph of the loss; the result replaces that of an earlier call.
  void look(const at::Tensor& loss_sum);
  // The shape of a tensor that outlived its graph; "" where there is none. Tensors that a step made for itself, such as
  // inputs that it differentiates by, are gone by then. Call it when nothing holds the loss any more.
  std::string shape_of_survivor() const;

 private:
  struct Leaf {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    std::string shape;
  };
  std::span<Parameter* const> trainable_;
  std::vector<Leaf> leaves_;
};

}  // namespace headroom
