// What a run says of itself before its first step.
#pragma once

#include "record/run_log.hpp"
#include "train/setup.hpp"

namespace headroom {

// Says what was decided for the experiment, and which of its keys do nothing in this run. Page-locks batches where
// data.pin_memory asks for it and the device can use it. [control]
void announce(const Setup& setup, RunLog& log);

}  // namespace headroom
