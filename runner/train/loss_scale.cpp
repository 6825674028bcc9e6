#include "train/loss_scale.hpp"

#include <algorithm>
#include <cmath>

namespace headroom {

namespace {

constexpr double first = 0x1p16, smallest = 0x1p-24;  // of a loss that is a mean, as GradScaler's
constexpr int64_t windows_until_doubled = 2000;

}  // namespace

LossScale::LossScale(bool scales) : scales_(scales) {
  if (scales) state_.factor = first;
}

bool LossScale::lower(double weight) {
  if (!scales_) return false;
  if (attempts_++ == 0) before_ = state_;
  // The loss is a sum: what GradScaler would begin with is found by the first window that overflows.
  const double as_of_mean = std::exp2(std::floor(std::log2(first / std::max(weight, 1.0))));
  const double less = std::ldexp(state_.factor, -(1 << std::min(attempts_ - 1, 5)));
  state_ = {attempts_ == 1 && state_.factor == first ? std::min(less, as_of_mean) : less, 0};
  if (state_.factor >= smallest) return true;
  state_ = before_;
  attempts_ = 0;
  return false;
}

void LossScale::went_through() {
  attempts_ = 0;
  if (!scales_ || ++state_.windows < windows_until_doubled) return;
  state_ = {state_.factor * 2, 0};
}

}  // namespace headroom
