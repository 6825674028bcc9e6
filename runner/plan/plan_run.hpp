// plan/: how much memory an experiment will take, before it takes it. A probe measures in a child process (probe_run),
// a fit computes from its points (fit), a plan compares with the limit (plan). Here the parts come together.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "train/run_data.hpp"
#include "train/train.hpp"

namespace headroom {

// The words after `headroom-train` that probe the experiment of the RunData: "probe", its file, ...
using ProbeWords = std::vector<std::string>;

// From the cache, or from a probe in a child process. Error: what ended the probe, also where not even its smallest
// micro-batch went through (does_not_fit).
Plan plan_for(const RunData& data, const std::string& limit, const ProbeWords& words);

// For `run`: nullopt, and one line that says why, when there is no plan. Error(does_not_fit) when it cannot fit
// even without reading ahead, beyond what a prediction may be wrong by.
std::optional<PlannedStart> plan_start(const RunData& data, const ProbeWords& words);

}  // namespace headroom
