// The gradients of a run of one process. What the first backward pass of a window gives a parameter is copied to memory
// of the parameter's own, and later passes add to it there: that reads and writes less than zeroing and adding.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// [compute] `trainable` and what it points to outlive it.
class WindowGradients {
 public:
  // Makes those of parameters that are frozen at first: no later step is to need what the first did not. The others are
  // made when a backward pass reaches their parameter.
  explicit WindowGradients(std::span<Parameter* const> trainable);
  ~WindowGradients();
  WindowGradients(const WindowGradients&) = delete;
  WindowGradients& operator=(const WindowGradients&) = delete;

  // A window, also where it begins again. No parameter has a gradient.
  void begin();
  // After each backward pass of it.
  void take();
  // After the last one: zero where the window has not reached the parameter.
  void end();

  // Those that have been made, in the order of parameters. Each stays at its address.
  std::span<const at::Tensor> all() const { return all_; }

 private:
  class Hook;
  void make(size_t parameter);
  void take(size_t parameter);

  const std::span<Parameter* const> trainable_;
  // Of each of trainable_: undefined where none was made yet, and whether something else than zero may be in it.
  std::vector<at::Tensor> own_;
  std::vector<char> written_;
  std::vector<at::Tensor> all_;
};

}  // namespace headroom
