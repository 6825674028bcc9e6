// sweep/: many runs of one experiment, as child processes. Start here: run_sweep() is the supervisor. It starts trials
// as child processes while what they are planned to need is free, sees them end and decides what becomes of them. It
// keeps nothing that is not on the disk: after any kill run_sweep() goes on. Torch-free. Commands need no more than
// this and list_trials():
//   trials.hpp         which trials there are              sweep_folder.hpp   a sweep on the disk
//   admission.hpp      what a trial needs, whether it fits trial_process.hpp  one child, from its start to its end
//   trial_starts.hpp   which trials start, and when        halving.hpp        who goes on, by metrics alone
//   results.hpp        what came out                       sweep_view.hpp     what a terminal shows
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "error.hpp"
#include "sweep/sweep_folder.hpp"

namespace headroom {

// The text of a trial's experiment file, with its options checked and defaults filled in.
using ResolveTrial = std::function<std::string(const Experiment&)>;

// Writes the trials' experiments and sweep.json into `folder`. `threads` of the plan go into experiments that leave
// them open. Error(bad_input) for the first trial that cannot be. REQUIRES: trials with their choices.
void lay_out_sweep(const std::filesystem::path& folder, const SweepPlan& plan, const std::vector<Override>& overrides,
                   const ResolveTrial& resolve);

// Runs what has no end yet, until every trial has one. Leaves results.json and results.csv, and prints the table on
// stdout. 0; resumable or interrupted where it was asked to stop; the exit code of the failures, where so many trials
// failed alike that the rest was not started. `program`: headroom. `jobs`: trials at once, 0: as it began. [control]
Exit run_sweep(const std::filesystem::path& folder, const std::filesystem::path& program, int jobs);

}  // namespace headroom
