// The schedule of learning rates.
#pragma once

#include <cstdint>

#include "config/experiment.hpp"

namespace headroom {

// The learning rate as a function of the step alone, so that resume needs no state.
class Schedule {
 public:
  Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps);
  double at(int64_t step) const;  // of the step about to be taken, counted from 0

 private:
  ScheduleSection section_;
  double lr_;
  int64_t steps_per_epoch_, total_steps_, warmup_steps_;
};

}  // namespace headroom
