#include "train/gradient_hook.hpp"

#include <memory>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <utility>

namespace headroom {

class GradientHook::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(std::function<void()> arrived, std::unique_ptr<PostAccumulateGradHook> earlier)
      : before(std::move(earlier)), arrived_(std::move(arrived)) {}

  void operator()(const at::Tensor& parameter) override {
    if (before != nullptr) (*before)(parameter);
    arrived_();
  }

  std::unique_ptr<PostAccumulateGradHook> before;  // of the plugin

 private:
  const std::function<void()> arrived_;
};

GradientHook::GradientHook(const Parameter& parameter, std::function<void()> arrived) : parameter_(parameter) {
  auto before = std::move(torch::autograd::impl::post_acc_grad_hooks(*parameter.tensor));
  torch::autograd::impl::set_post_acc_grad_hooks(*parameter.tensor,
                                                 std::make_unique<Hook>(std::move(arrived), std::move(before)));
}

GradientHook::~GradientHook() {
  auto& hook = torch::autograd::impl::post_acc_grad_hooks(*parameter_.tensor);
  if (auto* ours = dynamic_cast<Hook*>(hook.get())) hook = std::move(ours->before);
}

}  // namespace headroom
