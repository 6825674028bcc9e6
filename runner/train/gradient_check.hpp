// Checks that the graph of a model's loss leads to its parameters. A detached loss, a step that calls backward()
// itself, and tensors that were not registered would all train wrongly without an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// Finds tensors that a loss depends on, that require gradients and that are no parameters of the model: a submodule
// that was not registered, one made in the first step, a parameter that was replaced. The optimizer would never update
// them. Used by GradientCheck. [compute]
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

// Call in this order for each training pass: before_step(), the model's step, after_step(), backward, after_backward().
// It costs next to nothing: it reads LibTorch's version counters and no values, and walks the graph in the first
// windows only. `trainable` and what it points to outlive it. [compute]
class GradientCheck {
 public:
  GradientCheck(std::string model_id, std::span<Parameter* const> trainable);

  void before_step();
  // Error(plugin) where the step added to gradients itself.
  void after_step(const StepResult& result);
  void after_backward();

  // Call it at the end of a window that had valid elements, when nothing holds its losses any more. Error(plugin) where
  // the loss depended on a tensor that should have been a parameter, and where none of the first three such windows
  // gave any trainable parameter a gradient. One window alone may hold nothing that the loss depends on.
  void end_window();
  // Why no trainable parameter ever had a gradient; "" where one had, or none is trainable.
  std::string why_untrained() const;
  // The names of trainable parameters that never had a gradient.
  std::vector<std::string> without_gradient() const;

  // One character for each of `trainable`: '1' where a backward pass has reached it since begin_window(), else '0'.
  void begin_window();
  std::string reached() const;

 private:
  struct Entry {
    const Parameter* parameter;
    int64_t version = 0;  // of its gradient, before the step
    bool asked = false;   // it was trainable in some pass
    bool had_gradient = false;
    bool reached = false;  // in this window
  };
  void require_registered() const;

  static constexpr int patience = 3;
  std::string model_id_;
  std::vector<Entry> entries_;
  UnregisteredTensors unregistered_;
  bool had_graph_ = false;  // some step's loss had one
  int windows_ = 0;         // finished so far, up to three
};

}  // namespace headroom
