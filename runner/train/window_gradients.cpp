#include "train/window_gradients.hpp"

#include <torch/torch.h>

#include "memory/ledger.hpp"

namespace headroom {

WindowGradients::WindowGradients(std::span<Parameter* const> trainable)
    : trainable_(trainable), own_(trainable.size()) {
  for (size_t i = 0; i < trainable_.size(); ++i) {
    if (trainable_[i]->frozen_until_step > 0) make(i);
    // What autograd made is freed at once.
    hooks_.emplace_back(*trainable_[i], [this, i] { take(i); });
  }
  begin();
}

void WindowGradients::begin() {
  for (const Parameter* parameter : trainable_) parameter->tensor->mutable_grad().reset();
}

// A module in Python may have replaced the hooks.
void WindowGradients::take() {
  for (size_t i = 0; i < trainable_.size(); ++i) take(i);
}

void WindowGradients::take(size_t parameter) {
  at::Tensor& gradient = trainable_[parameter]->tensor->mutable_grad();
  if (!gradient.defined() || gradient.is_same(own_[parameter])) return;
  const at::NoGradGuard no_grad;
  if (!own_[parameter].defined()) make(parameter);
  if (gradient.layout() == at::kStrided) {
    own_[parameter].copy_(gradient);
  } else {
    own_[parameter].zero_().add_(gradient);
  }
  gradient = own_[parameter];
}

void WindowGradients::make(size_t parameter) {
  const OwnerScope scope(Owner::gradients);
  own_[parameter] = at::zeros_like(*trainable_[parameter]->tensor, at::TensorOptions().requires_grad(false));
}

}  // namespace headroom
