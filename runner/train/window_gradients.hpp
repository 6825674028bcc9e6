// The gradients of a run of one process. What the first backward pass of a window gives a parameter is copied to memory
// of the parameter's own, and later passes add to it there: that reads and writes less than zeroing and adding.
#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "plugins/torch_model.hpp"
#include "train/gradient_hook.hpp"

namespace headroom {

// [compute] `trainable` and what it points to outlive it.
class WindowGradients {
 public:
  // Makes those of parameters that are frozen at first: no later step is to need what the first did not. The others are
  // made when a backward pass reaches their parameter. Each stays at its address.
  explicit WindowGradients(std::span<Parameter* const> trainable);
  WindowGradients(const WindowGradients&) = delete;
  WindowGradients& operator=(const WindowGradients&) = delete;

  // A window, also where it begins again. No parameter has a gradient until a backward pass reaches it.
  void begin();
  // After each backward pass of it.
  void take();

 private:
  void make(size_t parameter);
  void take(size_t parameter);

  const std::span<Parameter* const> trainable_;
  std::vector<at::Tensor> own_;  // of each of trainable_; undefined: none yet
  std::list<GradientHook> hooks_;
};

}  // namespace headroom
