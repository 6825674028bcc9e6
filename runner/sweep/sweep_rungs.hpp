// Successive halving in a sweep that goes on: who waits at the end of a rung, who goes on, who never will.
#pragma once

#include <vector>

#include "sweep/halving.hpp"
#include "sweep/trial_entry.hpp"

namespace headroom {

// Without halving nothing here does anything. Keeps nothing that the trials' records do not say.
class SweepRungs {
 public:
  SweepRungs(const Halving& halving, std::vector<TrialEntry>& entries) : halving_(halving), entries_(entries) {}

  // Of a trial that has settled. Where it has come to the end of its rung, that is written down; true where it is to
  // wait there.
  bool pause(TrialEntry& entry) const;
  // Opens the trials that may go on by now.
  void promote();
  // No rung will change any more: whoever waits is dropped.
  void drop() const;
  // Where the trial is to stop; 0: at its own end.
  int64_t until_epoch(const TrialEntry& entry) const;

 private:
  const Halving& halving_;
  std::vector<TrialEntry>& entries_;
  size_t known_ = 0;  // metrics and ends at the last promote()
};

}  // namespace headroom
