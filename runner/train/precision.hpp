// train.precision as the run computes. bf16 and fp16 are mixed precision (Micikevicius et al. 2018, "Mixed Precision
// Training"; torch.autocast): parameters, gradients and the optimizer stay float32, matrix products and convolutions
// and what they keep for backward are narrow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <torch/torch.h>

#include "plugins/precision_dtypes.hpp"

namespace headroom {

bool scales_loss(const std::string& precision);  // see LossScale

// A line on a device that computes it no faster than float32; "" where it does.
std::string slow_precision(const std::string& precision, at::Device device);

// Keeps small gradients of float16 from vanishing: the loss is multiplied by a power of two before backward, the
// gradients are divided by it (Micikevicius et al. 2018, section 3.2; the rule is that of torch.amp.GradScaler). A
// window whose gradients overflow is computed again with a smaller scale, where GradScaler leaves its samples out: so
// what is trained on does not depend on how a batch is divided.
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
  void succeeded();

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
