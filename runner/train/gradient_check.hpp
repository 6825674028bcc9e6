// Whether the graph of a model's loss leads to its parameters. A loss that was detached, a step that calls backward()
// itself and tensors that were not registered would all train silently wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"
#include "train/unregistered.hpp"

namespace headroom {

// Around each training pass: before_step(), the model's step, after_step(), backward, after_backward(). It looks at
// LibTorch's version counters and at no value, and walks the graph in the first windows only, so it costs nothing to
// speak of. `trainable` and what it points to outlive it. [compute]
class GradientCheck {
 public:
  // `trainable` have gradients, which stay where they are.
  GradientCheck(std::string model_id, std::span<Parameter* const> trainable);

  void before_step();
  // Error(plugin) where the step added to gradients itself.
  void after_step(const StepResult& result);
  void after_backward();

  // At the end of a window in which elements counted, when nothing holds its losses any more. Error(plugin) where its
  // loss depended on a tensor that should have been a parameter, and where none of the first three such windows gave a
  // gradient to any parameter that was to be trained: one alone may hold nothing that the loss looks at.
  void end_window();
  // Why no parameter that was to be trained ever had a gradient; "": one had, or none was to be trained.
  std::string why_untrained() const;
  // The names of those that were to be trained and never had a gradient.
  std::vector<std::string> without_gradient() const;

 private:
  struct Entry {
    const Parameter* parameter;
    int64_t version = 0;  // of its gradient, before the step
    bool asked = false;   // it was to be trained in some pass
    bool had_gradient = false;
  };
  void require_registered() const;

  static constexpr int patience = 3;
  std::string model_id_;
  std::vector<Entry> entries_;
  UnregisteredTensors unregistered_;
  bool had_graph_ = false;  // the loss of some step
  int windows_ = 0;         // that ended so far, up to three
};

}  // namespace headroom
