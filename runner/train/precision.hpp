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

// A line for the log where this device computes the precision no faster than float32; else "".
std::string slow_precision(const std::string& precision, at::Device device);

// Keeps small float16 gradients from underflowing to zero: the loss is multiplied by a power of two before backward,
// and the gradients are divided by it afterwards (Micikevicius et al. 2018, section 3.2; the rule is that of
// torch.amp.GradScaler). A window whose gradients overflow is computed again with a smaller scale. GradScaler would
// leave its samples out; here the samples that are trained on do not depend on how a batch is divided.
class LossScale {
 public:
  struct State {
    double factor = 1.0;
    int64_t windows = 0;  // completed since the factor changed
  };

  // Without `scales` the factor is always 1.
  explicit LossScale(bool scales);

  double factor() const { return state_.factor; }

  // Call it when gradients are not finite although the loss is; `weight` is the window's. Returns true: compute the
  // window again. Returns false: no factor helps, and the factor is again what it was before the window.
  bool lower(double weight);
  void succeeded();

  // For a checkpoint; nullopt without `scales`.
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
