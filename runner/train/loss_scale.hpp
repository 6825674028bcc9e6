// Keeps small gradients of float16 from vanishing: the loss is multiplied by a power of two before backward, the
// gradients are divided by it (Micikevicius et al. 2018, section 3.2; the rule is that of torch.amp.GradScaler). A
// window whose gradients overflow is computed again with less, where GradScaler leaves its samples out: so what is
// trained on does not depend on how a batch is divided.
#pragma once

#include <cstdint>
#include <optional>

namespace headroom {

class LossScale {
 public:
  struct State {
    double factor = 1.0;
    int64_t windows = 0;  // that went through since it changed
  };

  // Without `scales` the factor is 1 for ever.
  explicit LossScale(bool scales);

  double factor() const { return state_.factor; }

  // Gradients are not finite while the loss is; `weight` is the window's. true: compute it again. false: no factor
  // helps, and all is as it was before the window.
  bool lower(double weight);
  void went_through();

  // For a checkpoint; nullopt where nothing scales.
  std::optional<State> state() const { return scales_ ? std::optional(state_) : std::nullopt; }
  void restore(const std::optional<State>& state) {
    if (scales_ && state) state_ = *state;
  }

 private:
  bool scales_;
  State state_, before_;  // before_: when the window's first attempt began
  int attempts_ = 0;      // of this window that overflowed
};

}  // namespace headroom
