// plan/: how much memory an experiment will take, before it takes it. Start here.
//
// A probe (probe.hpp) is what a short run of the experiment measured, at a few micro-batches. find_probe() has it from
// the user's cache, or from a child process, which calls run_probe(). A Fit (fit.hpp) computes the peak of any
// setting from its points; a Plan (plan.hpp) compares settings with the limit. Here the parts come together. Of plan/,
// the other folders use this header and run_probe().
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "plan/probe.hpp"
#include "train/train.hpp"

namespace headroom {

// From the cache, or from a probe in a child process. Error: what ended the probe, also where not even its smallest
// micro-batch went through (does_not_fit).
Plan plan_for(const RunData& data, const std::string& limit, const ProbeWords& words);

// For `run`: nullopt, and one line that says why, when there is no plan. Error(does_not_fit) when it cannot fit
// even without reading ahead, beyond what a prediction may be wrong by.
std::optional<PlannedStart> plan_start(const RunData& data, const ProbeWords& words);

}  // namespace headroom
