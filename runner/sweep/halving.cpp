#include "sweep/halving.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headroom {

namespace {

// The trials that have reached one rung, best first.
class HalvingRung {
 public:
  HalvingRung(std::span<const Climb> trials, size_t number, int64_t reduction, bool lower_wins)
      : trials_(trials), number_(number), reduction_(static_cast<size_t>(reduction)), lower_wins_(lower_wins) {}

  void add(size_t trial) {
    const auto is_before = [&](size_t a, size_t b) { return is_better(metric(a), metric(b)); };
    // Behind its equals: the one that came first stays ahead.
    const auto place = ranked_.insert(std::ranges::upper_bound(ranked_, trial, is_before), trial);
    const auto rank = static_cast<size_t>(place - ranked_.begin());
    const size_t best = ranked_.size() / reduction_;
    // Whoever was among the best before has been promoted: at most one is new among them.
    if (rank < best) {
      promoted_.push_back(trial);
    } else if (best > 0 && std::ranges::find(promoted_, ranked_[best - 1]) == promoted_.end()) {
      promoted_.push_back(ranked_[best - 1]);
    }
  }
  void complete() {
    if (promoted_.empty() && !ranked_.empty()) promoted_.push_back(ranked_.front());
  }
  const std::vector<size_t>& promoted() const { return promoted_; }  // in order

 private:
  double metric(size_t trial) const { return trials_[trial].metrics[number_]; }
  bool is_better(double a, double b) const {
    // Behind every number, and equal to each other: so this stays an order.
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    return lower_wins_ ? a < b : a > b;
  }

  std::span<const Climb> trials_;
  size_t number_, reduction_;
  bool lower_wins_;
  std::vector<size_t> ranked_, promoted_;
};

}  // namespace

Halving halving_of(const SweepSection& sweep, const Experiment& base) {
  if (sweep.strategy != "asha") return {};
  const auto refuse_sweep = [&](const std::string& sentence) {
    throw Error(Exit::bad_input, "sweep", base.file.string() + ": sweep.strategy is \"asha\", " + sentence);
  };
  const int64_t epochs = base.train.epochs;
  if (std::ranges::find(sweep.keys, "train.epochs", &SweptKey::path) != sweep.keys.end())
    refuse_sweep("and train.epochs is swept: it decides how far each trial runs; take train.epochs out of [sweep]");
  if (sweep.min_epochs >= epochs) {
    refuse_sweep("and sweep.min_epochs is " + std::to_string(sweep.min_epochs) + " where train.epochs is " +
                 std::to_string(epochs) + ": trials are compared after min_epochs, so train.epochs must be more");
  }
  if (base.experiment.metric.starts_with("val/") && sweep.min_epochs < base.eval.every_epochs) {
    refuse_sweep("and sweep.min_epochs is " + std::to_string(sweep.min_epochs) + " where eval.every_epochs is " +
                 std::to_string(base.eval.every_epochs) + ": by then there is no " + base.experiment.metric +
                 "; set min_epochs to eval.every_epochs or more");
  }
  Halving halving{.rung_epochs = {}, .reduction = sweep.reduction};
  for (int64_t end = sweep.min_epochs; end < epochs; end *= sweep.reduction) {
    halving.rung_epochs.push_back(end);
    // The next rung would not lie below the last; so the product never overflows either.
    if (end > epochs / sweep.reduction) break;
  }
  halving.rung_epochs.push_back(epochs);
  return halving;
}

std::vector<size_t> promotions(std::span<const Climb> trials, const Halving& halving, bool lower_wins) {
  std::vector<size_t> reach(trials.size(), 0), arrivals(trials.size());
  std::iota(arrivals.begin(), arrivals.end(), size_t{0});
  // Once a trial is missing at a rung, higher rungs are not complete either.
  bool all_have_come = true;
  for (size_t number = 0; number + 1 < halving.rung_epochs.size(); ++number) {
    HalvingRung rung(trials, number, halving.reduction, lower_wins);
    for (const size_t trial : arrivals) {
      const bool has_reached = trials[trial].metrics.size() > number;
      all_have_come = all_have_come && (has_reached || trials[trial].is_out);
      if (!all_have_come) break;  // what comes after it waits for it
      if (has_reached) rung.add(trial);
    }
    if (all_have_come) rung.complete();
    arrivals = rung.promoted();
    for (const size_t trial : arrivals) reach[trial] = number + 1;
  }
  return reach;
}

}  // namespace headroom
