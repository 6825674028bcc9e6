// Successive halving, asynchronous (ASHA: Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2018).
// Trials run to the end of a rung - so many epochs - and wait; the best of a rung go on to the next, long before all
// others have come so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/experiment.hpp"
#include "config/sweep.hpp"

namespace headroom {

struct Halving {
  std::vector<int64_t> rung_epochs;  // rising; the last is train.epochs. Empty: every trial runs to its end
  int64_t reduction = 3;             // of this many trials one goes on
  bool is_on() const { return !rung_epochs.empty(); }
};

// min_epochs, and `reduction` times the one before while that is below train.epochs. Error(bad_input) where a trial's
// metric at the first rung cannot decide.
Halving halving_of(const SweepSection& sweep, const Experiment& base);

// One trial on its way up.
struct Climb {
  std::vector<double> metrics;  // at the end of each rung it has reached; NaN is the worst
  bool is_out = false;          // it reaches no more: it failed, or was never started
};

// The rung that each trial may go to, from 0. A function of the metrics alone: rungs are looked at in the order in
// which trials came to them, as if one trial ran at a time, so that neither how many run at once nor which is faster
// changes a promotion, and more metrics never take one back. Of the first n trials of a rung the best n / reduction go
// on; where a rung is complete and none did, its best does.
std::vector<size_t> promotions(std::span<const Climb> trials, const Halving& halving, bool lower_wins);

}  // namespace headroom
