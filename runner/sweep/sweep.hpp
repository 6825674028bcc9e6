// sweep/: many runs of one experiment. Start here: run_sweep() starts trials as child processes while the memory that
// they are planned to need is free, or gives them to Slurm, follows them to their ends, and decides what becomes of
// each. All of its state is on the disk, so it continues after any kill. Torch-free. Commands need this header and
// list_trials() only:
//   trials.hpp         which trials there are              sweep_folder.hpp   a sweep on the disk
//   admission.hpp      what a trial needs, whether it fits trial_process.hpp  one child, from its start to its end
//   trial_starts.hpp   which trials start, and when        halving.hpp        promotions, by metrics alone
//   slurm_jobs.hpp     the jobs of a sweep in Slurm        trial_job.hpp      one of them: its script
//   results.hpp        the results                         sweep_view.hpp     the display on a terminal
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "error.hpp"
#include "sweep/sweep_folder.hpp"

namespace headroom {

// Returns the text of a trial's experiment file, with its options checked and defaults filled in.
using ResolveTrial = std::function<std::string(const Experiment&)>;

// Writes the trials' experiments and sweep.json into `folder`. Experiments that do not set their threads get the
// plan's. Error(bad_input) for the first trial that is not valid. REQUIRES: the plan's trials have their choices.
void lay_out_sweep(const std::filesystem::path& folder, const SweepPlan& plan, const std::vector<Override>& overrides,
                   const ResolveTrial& resolve);

// Runs all trials that have not ended, until all have. Writes results.json and results.csv, and prints the table on
// stdout. Returns 0; resumable or interrupted where a signal stopped it; or the exit code of the failures, where so
// many trials failed alike that the others were not started. `program`: headroom. `jobs`: trials at once; 0: as when
// the sweep began. `sbatch_options`: in place of those that the sweep began with, where there are any. [control]
Exit run_sweep(const std::filesystem::path& folder, const std::filesystem::path& program, int jobs,
               const std::vector<std::string>& sbatch_options = {});

}  // namespace headroom
