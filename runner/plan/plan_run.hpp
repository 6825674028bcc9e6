// plan/: predicts how much memory an experiment will need. Start here.
//
// A probe (probe.hpp) holds what a short run of the experiment measured at a few micro-batches. find_probe() takes it
// from the user's cache or from a child process, which calls run_probe(). A Fit (fit.hpp) computes the peak of any
// setting from the probe's points; a Plan (plan.hpp) compares settings with the limit. The functions here combine them.
// Other folders use only this header and run_probe().
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "plan/probe.hpp"
#include "train/train.hpp"

namespace headroom {

// The plan of an experiment, from a cached or a new probe. Error: what ended the probe, and does_not_fit where not even
// its smallest micro-batch fitted.
Plan plan_for(const RunData& data, const std::string& limit, const ProbeWords& words);

// For `run`. Returns nullopt and logs one line that says why when there is no plan. Error(does_not_fit) when the run
// cannot fit even without reading ahead, by more than the error of a prediction.
std::optional<PlannedStart> plan_start(const RunData& data, const ProbeWords& words);

}  // namespace headroom
