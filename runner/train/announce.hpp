// The lines that a run logs before its first step.
#pragma once

#include "record/run_log.hpp"
#include "train/setup.hpp"

namespace headroom {

// Logs what was decided for the experiment, and which of its keys have no effect in this run. [control]
void announce(const Setup& setup, RunLog& log);

}  // namespace headroom
