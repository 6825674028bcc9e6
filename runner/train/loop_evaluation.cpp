// The end of an epoch in a TrainingLoop: what it measures, and what follows from that for best, plateau and early stop.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ranks/group.hpp"
#include "train/loop.hpp"
#include "train/signals.hpp"

namespace headroom {

// Where others took the memory of one rank, the others end their evaluation too.
bool TrainingLoop::evaluate_epoch() {
  is_measured_ = false;
  const bool measured = is_measured_ = measure_epoch();
  return setup_.data.group != nullptr ? setup_.data.group->on_all(measured) : measured;
}

// The metrics of the epoch. Those of train are sums that the steps left; those of val are measured here, with the
// averaged weights where there are some. What ranks tell each other comes first: none of them may end before it.
bool TrainingLoop::measure_epoch() try {
  std::optional<StepSums> val;
  if (is_evaluated()) {
    val = evaluate_val();
    if (!val) return false;
    setup_.data.ranks().is_first() ? examples_->write(position_.step, position_.epoch + 1) : examples_->forget_taken();
  }
  const auto measured = [this](const StepSums& sums, const char* split) {
    Measured found;
    with_one_retry("the metrics of an epoch", Owner::metrics, setup_.device, setup_.advice(),
                   [&] { found = sums.measured(split, setup_.model->metrics()); });
    return found;
  };
  Measured all = measured(step_.epoch_sums(), "train");
  if (val) all.append(measured(*val, "val"));
  position_.measured = std::move(all);
  return true;
} catch (const TakenByOthers& taken) {
  stop_for(taken);
  return false;
}

// Every eval.every_epochs epochs; the last one is, whatever that says.
bool TrainingLoop::is_evaluated() const {
  const bool last = position_.epoch + 1 >= experiment_.train.epochs || position_.step == experiment_.train.max_steps;
  return val_loader_ != nullptr && ((position_.epoch + 1) % experiment_.eval.every_epochs == 0 || last);
}

std::optional<StepSums> TrainingLoop::evaluate_val() {
  log_.begin_epoch("val", position_.epoch, experiment_.train.epochs,
                   static_cast<int64_t>(val_loader_->batches_per_epoch()));
  memory_.note(Phase::evaluating);
  const Optimizer::Averaged averaged(step_.optimizer());
  return evaluate_shares([&](int64_t batches) {
    log_.progress(batches, {});
    gc_points_.eval_batch_done();
    return stop_requested() != Exit::ok || is_in_vain();
  });
}

// What an evaluation has to gain to count for train.early_stop and the plateau schedule.
double TrainingLoop::least_gain() const {
  return experiment_.train.early_stop ? experiment_.train.early_stop->min_delta : 0.0;
}

// Also counts the evaluations in a row that brought nothing, for train.early_stop and the plateau schedule.
bool TrainingLoop::compare_with_best() {
  const Scalars& values = position_.measured.values;
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == metric_; });
  if (found == values.end()) return false;  // not evaluated this epoch, or nothing counted
  if (!std::isfinite(found->second)) {
    log_.say(metric_ + " is " + std::to_string(found->second) + " after epoch " + std::to_string(position_.epoch + 1) +
             ": such an epoch is never the best");
  }
  const auto gains = [&](double before, double more_than) {
    // A NaN would stay the best: every comparison with it is false.
    if (!std::isfinite(found->second)) return false;
    return !position_.has_best || (lower_is_better_ ? before - found->second : found->second - before) > more_than;
  };
  // Small changes add up: they count from the last one that was large enough.
  const bool is_improvement = gains(position_.improved_to, least_gain()), is_best = gains(position_.best, 0.0);
  position_.stale_evaluations = is_improvement ? 0 : position_.stale_evaluations + 1;
  position_.plateau_stale = is_improvement ? 0 : position_.plateau_stale + 1;
  if (is_improvement) position_.improved_to = found->second;
  if (!is_best) return false;
  position_.has_best = true;
  position_.best = found->second;
  position_.best_epoch = position_.epoch + 1;
  position_.best_step = position_.step;
  return true;
}

// A resumed run may have another experiment.metric, whose values do not compare with those of the old one.
void TrainingLoop::judge_by_metric() {
  const std::string now = metric_ + (lower_is_better_ ? " (lower is better)" : " (higher is better)");
  const std::string before = std::exchange(position_.judged_by, now);
  if (before.empty() || before == now) return;
  position_.has_best = false;
  position_.stale_evaluations = position_.plateau_stale = 0;
  log_.say("experiment.metric was " + before + ", is " + now + ": the best is looked for anew from here on");
}

void TrainingLoop::judge_plateau() {
  const ScheduleSection& section = experiment_.train.schedule;
  // A rate that has still to rise is not what holds the metric up.
  if (position_.step <= schedule_.warmup_steps()) position_.plateau_stale = 0;
  if (section.name != "plateau" || position_.plateau_stale < section.plateau_patience) return;
  const double was = schedule_.at(position_.step, position_.plateau_drops);
  position_.plateau_stale = 0;
  ++position_.plateau_drops;
  // Equal at train.schedule.min_lr.
  if (const double is = schedule_.at(position_.step, position_.plateau_drops); is < was) report_plateau(was, is);
}

void TrainingLoop::judge_early_stop() {
  const auto& early = experiment_.train.early_stop;
  position_.stopped_early = early && position_.stale_evaluations >= early->patience;
  if (position_.stopped_early) report_early_stop();
}

}  // namespace headroom
