// Asynchronous successive halving (ASHA: Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2018). A
// rung is a number of epochs. Trials run to the end of a rung and pause; the best of a rung are promoted to the next
// one without waiting for all others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/experiment.hpp"
#include "config/sweep.hpp"

namespace headroom {

struct Halving {
  std::vector<int64_t> rung_epochs;  // rising; the last is train.epochs. Empty: every trial runs to its end
  int64_t reduction = 3;             // one of this many trials is promoted
  bool is_on() const { return !rung_epochs.empty(); }
};

// The rungs: min_epochs, and then `reduction` times the one before, as long as that is below train.epochs.
// Error(bad_input) where the metric cannot be compared at the first rung.
Halving halving_of(const SweepSection& sweep, const Experiment& base);

// The progress of one trial.
struct Climb {
  std::vector<double> metrics;  // at the end of each rung that it reached; NaN is the worst
  bool is_out = false;          // it will reach no further rung: it failed, or was never started
};

// The rung, from 0, that each trial may run to. A function of the metrics alone. Trials enter a rung in a fixed order,
// as if one ran at a time, so a promotion depends neither on how many trials run at once nor on which is faster, and
// further metrics never undo one. Of the first n trials of a rung the best n / reduction are promoted; in a complete
// rung with no promotion, its best trial is.
std::vector<size_t> promotions(std::span<const Climb> trials, const Halving& halving, bool lower_wins);

}  // namespace headroom
