#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom {

namespace {

// Half a period of a cosine from `start` to `end`.
double along_cosine(double start, double end, double done) {
  return end + (start - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

bool rises_by_itself(const ScheduleSection& section) { return section.name == "one_cycle" || section.name == "table"; }

}  // namespace

bool spans_the_run(const ScheduleSection& section) {
  return section.name == "cosine" || section.name == "linear" || section.name == "one_cycle";
}

Schedule::Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps)
    : section_(section), lr_(lr), steps_per_epoch_(std::max<int64_t>(steps_per_epoch, 1)), total_steps_(total_steps) {
  warmup_steps_ = section.warmup_steps > 0
                      ? section.warmup_steps
                      : std::llround(section.warmup_epochs * static_cast<double>(steps_per_epoch_));
  if (rises_by_itself(section)) warmup_steps_ = 0;
}

double Schedule::at(int64_t step, int64_t drops) const {
  const std::string& name = section_.name;
  // From 1 / warmup_steps on: a first step with a rate of 0 would train nothing.
  if (step < warmup_steps_) return lr_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  if (name == "constant") return lr_;
  if (name == "one_cycle") return one_cycle(static_cast<double>(step));
  if (name == "table") return table(static_cast<double>(step) / static_cast<double>(steps_per_epoch_));
  if (name == "plateau") {
    return std::max(section_.min_lr, lr_ * std::pow(section_.plateau_factor, static_cast<double>(drops)));
  }
  const auto since = static_cast<double>(step - warmup_steps_);
  if (name == "cosine_restarts") return restarts(since);
  if (name == "step") {
    // In steps, which may be a fraction: step_epochs is a number of epochs.
    const double period = section_.step_epochs * static_cast<double>(steps_per_epoch_);
    return std::max(section_.min_lr, lr_ * std::pow(section_.gamma, std::floor(since / period)));
  }
  const double done = std::min(1.0, since / static_cast<double>(std::max<int64_t>(total_steps_ - warmup_steps_, 1)));
  if (name == "cosine") return along_cosine(lr_, section_.min_lr, done);
  return section_.min_lr + (lr_ - section_.min_lr) * (1.0 - done);
}

// As torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, step by step: the fall number n is restart_factor^n times as
// long as the first.
double Schedule::restarts(double since) const {
  const double first = section_.restart_epochs * static_cast<double>(steps_per_epoch_),
               factor = section_.restart_factor;
  if (factor == 1.0) return along_cosine(lr_, section_.min_lr, std::fmod(since, first) / first);
  const auto begin_of = [&](double n) { return first * (std::pow(factor, n) - 1.0) / (factor - 1.0); };
  double n = std::floor(std::log1p(since * (factor - 1.0) / first) / std::log(factor));
  // The logarithms round.
  if (n > 0 && begin_of(n) > since) n -= 1.0;
  if (begin_of(n + 1.0) <= since) n += 1.0;
  return along_cosine(lr_, section_.min_lr, (since - begin_of(n)) / (first * std::pow(factor, n)));
}

// As torch.optim.lr_scheduler.OneCycleLR with its two phases along a cosine.
double Schedule::one_cycle(double step) const {
  const double begin = lr_ / section_.div_factor, end = begin / section_.final_div_factor;
  const auto total = static_cast<double>(total_steps_);
  const double last = std::max(total - 1.0, 0.0), top = section_.pct_start * total - 1.0;
  const double now = std::min(step, last);
  if (now <= top) return along_cosine(begin, lr_, top > 0 ? now / top : 1.0);
  return along_cosine(lr_, end, (now - top) / (last - top));
}

double Schedule::table(double epoch) const {
  const SchedulePoints& points = section_.points;
  const auto after = std::upper_bound(points.begin(), points.end(), epoch,
                                      [](double at, const auto& point) { return at < point.first; });
  if (after == points.begin()) return lr_ * points.front().second;
  const auto& [from, factor] = *std::prev(after);
  if (after == points.end()) return lr_ * factor;
  return lr_ * (factor + (after->second - factor) * (epoch - from) / (after->first - from));
}

}  // namespace headroom
