// Puts a model's module into train() or eval(), as each call says. Needs LibTorch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "headroom/sdk/error.hpp"

namespace headroom::sdk::detail {

class TrainingMode {
 public:
  // Before a step: dropout and batch norm of torch::nn do as the call says. train() visits every submodule, so only a
  // change asks it.
  void set(torch::nn::Module* root, bool on) {
    if (on_ == on) return;
    if (root != nullptr) {
      if (!on_) note_what_stays(*root);
      root->train(on);
      for (const auto& module : stay_in_eval_) module->eval();
    }
    on_ = on;
  }

  // After a step: the next one relies on it.
  void require(const torch::nn::Module* root) const {
    if (root == nullptr || root->is_training() == on_) return;
    throw Error(HR_INTERNAL, std::string("step() leaves the module in ") + (*on_ ? "eval()" : "train()") +
                                 ": leave both out, the SDK calls train() or eval() before each step as the call says; "
                                 "a part that is to stay in eval() is put there by the constructor");
  }

 private:
  void note_what_stays(const torch::nn::Module& root) {
    for (const auto& module : root.modules(/*include_self=*/false)) {
      if (!module->is_training()) stay_in_eval_.push_back(module);
    }
  }

  std::optional<bool> on_;  // nullopt: as the constructor left it
  std::vector<std::shared_ptr<torch::nn::Module>> stay_in_eval_;
};

}  // namespace headroom::sdk::detail
