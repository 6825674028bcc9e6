// The learning-rate schedule.
#pragma once

#include <cstdint>

#include "config/experiment.hpp"

namespace headroom {

// The learning rate as a function of the step alone; "plateau" also depends on how often the rate has dropped. A
// resumed run needs no other state.
class Schedule {
 public:
  Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps);
  // The rate of the next step; steps count from 0. `drops`: how often "plateau" has dropped the rate.
  double at(int64_t step, int64_t drops = 0) const;
  // The number of warm-up steps, in which the rate rises to its full height.
  int64_t warmup_steps() const { return warmup_steps_; }

 private:
  double restarts(double since) const;
  double one_cycle(double step) const;
  double table(double epoch) const;

  ScheduleSection section_;
  double lr_;
  int64_t steps_per_epoch_, total_steps_, warmup_steps_;
};

// Whether the schedule spans the whole run, so that the rate at a step changes with the length of the run.
bool spans_the_run(const ScheduleSection& section);

}  // namespace headroom
