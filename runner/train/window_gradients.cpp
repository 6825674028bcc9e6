#include "train/window_gradients.hpp"

#include <algorithm>
#include <memory>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>
#include <utility>

#include "memory/ledger.hpp"

namespace headroom {

// Called when backward has given a parameter a gradient: what autograd made of it is freed at once.
class WindowGradients::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(WindowGradients& gradients, size_t parameter, std::unique_ptr<PostAccumulateGradHook> earlier)
      : before(std::move(earlier)), gradients_(gradients), parameter_(parameter) {}

  void operator()(const at::Tensor& tensor) override {
    if (before != nullptr) (*before)(tensor);
    gradients_.take(parameter_);
  }

  std::unique_ptr<PostAccumulateGradHook> before;  // of the plugin

 private:
  WindowGradients& gradients_;
  const size_t parameter_;
};

WindowGradients::WindowGradients(std::span<Parameter* const> trainable)
    : trainable_(trainable), own_(trainable.size()), written_(trainable.size()) {
  all_.reserve(trainable.size());
  for (size_t i = 0; i < trainable_.size(); ++i) {
    if (trainable_[i]->frozen_until_step > 0) make(i);
    const at::Tensor& tensor = *trainable_[i]->tensor;
    auto before = std::move(torch::autograd::impl::post_acc_grad_hooks(tensor));
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::make_unique<Hook>(*this, i, std::move(before)));
  }
  begin();
}

WindowGradients::~WindowGradients() {
  for (const Parameter* parameter : trainable_) {
    auto& hook = torch::autograd::impl::post_acc_grad_hooks(*parameter->tensor);
    if (auto* ours = dynamic_cast<Hook*>(hook.get())) hook = std::move(ours->before);
  }
}

void WindowGradients::begin() {
  for (const Parameter* parameter : trainable_) parameter->tensor->mutable_grad().reset();
}

// A module in Python may have replaced the hooks.
void WindowGradients::take() {
  for (size_t i = 0; i < trainable_.size(); ++i) take(i);
}

void WindowGradients::end() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < trainable_.size(); ++i) {
    at::Tensor& gradient = trainable_[i]->tensor->mutable_grad();
    if (gradient.defined() || !own_[i].defined()) continue;
    if (std::exchange(written_[i], 0) != 0) own_[i].zero_();
    gradient = own_[i];
  }
}

void WindowGradients::take(size_t parameter) {
  at::Tensor& gradient = trainable_[parameter]->tensor->mutable_grad();
  if (!gradient.defined() || gradient.is_same(own_[parameter])) return;
  const at::NoGradGuard no_grad;
  if (!own_[parameter].defined()) make(parameter);
  written_[parameter] = 1;
  if (gradient.layout() == at::kStrided) {
    own_[parameter].copy_(gradient);
  } else {
    own_[parameter].zero_().add_(gradient);
  }
  gradient = own_[parameter];
}

void WindowGradients::make(size_t parameter) {
  const OwnerScope scope(Owner::gradients);
  at::Tensor made = at::zeros_like(*trainable_[parameter]->tensor, at::TensorOptions().requires_grad(false));
  const auto at = own_.begin() + static_cast<std::ptrdiff_t>(parameter);
  const auto earlier = std::count_if(own_.begin(), at, [](const at::Tensor& own) { return own.defined(); });
  *at = *all_.insert(all_.begin() + earlier, std::move(made));
}

}  // namespace headroom
