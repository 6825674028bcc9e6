// The schedule of learning rates.
#pragma once

#include <cstdint>

#include "config/experiment.hpp"

namespace headroom {

// The learning rate as a function of the step, and for "plateau" of how often it has dropped: resume needs no other
// state.
class Schedule {
 public:
  Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps);
  // Of the step about to be taken, counted from 0. `drops`: of "plateau".
  double at(int64_t step, int64_t drops = 0) const;
  // Steps in which the rate rises to its full height first.
  int64_t warmup_steps() const { return warmup_steps_; }

 private:
  double restarts(double since) const;
  double one_cycle(double step) const;
  double table(double epoch) const;

  ScheduleSection section_;
  double lr_;
  int64_t steps_per_epoch_, total_steps_, warmup_steps_;
};

// Whether a rate is a fraction of the run: with another length that of a step is another.
bool spans_the_run(const ScheduleSection& section);

}  // namespace headroom
