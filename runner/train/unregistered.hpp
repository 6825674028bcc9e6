// Tensors that a loss is to be learnt by and that are no parameter of the model: a submodule that was not registered,
// one that is made in the first step, a parameter that was replaced. The optimizer knows none of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// [compute]
class UnregisteredTensors {
 public:
  explicit UnregisteredTensors(std::span<Parameter* const> trainable);

  // Walks the graph of the loss, in place of the one that it saw before.
  void look(const at::Tensor& loss_sum);
  // The shape of one that outlived its graph; "": there is none. What a step made for itself, such as inputs that it
  // differentiates by, is gone by then. Call it when nothing holds the loss any more.
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
