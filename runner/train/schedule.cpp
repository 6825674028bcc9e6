#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom {

Schedule::Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps)
    : section_(section), lr_(lr), steps_per_epoch_(std::max<int64_t>(steps_per_epoch, 1)), total_steps_(total_steps) {
  warmup_steps_ = section.warmup_steps > 0
                      ? section.warmup_steps
                      : std::llround(section.warmup_epochs * static_cast<double>(steps_per_epoch_));
}

double Schedule::at(int64_t step) const {
  // From 1 / warmup_steps on: a first step with a rate of 0 would train nothing.
  if (step < warmup_steps_) return lr_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  if (section_.name == "constant") return lr_;
  const auto since = static_cast<double>(step - warmup_steps_);
  if (section_.name == "step") {
    // In steps, which may be a fraction: step_epochs is a number of epochs.
    const double period = section_.step_epochs * static_cast<double>(steps_per_epoch_);
    return std::max(section_.min_lr, lr_ * std::pow(section_.gamma, std::floor(since / period)));
  }
  const double done = std::min(1.0, since / static_cast<double>(std::max<int64_t>(total_steps_ - warmup_steps_, 1)));
  const double left = section_.name == "cosine" ? 0.5 * (1.0 + std::cos(std::numbers::pi * done)) : 1.0 - done;
  return section_.min_lr + (lr_ - section_.min_lr) * left;
}

}  // namespace headroom
