// A trial's run as a job: the script that Slurm starts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/sweep_folder.hpp"

namespace headroom {

struct JobWords {
  std::vector<std::string> begin;  // of a run that has not begun: "run trial.toml --out DIR"
  std::vector<std::string> both;   // behind "--resume RUN" as well
};

// The script. Slurm may start it again whenever it likes (--requeue): it continues the trial's newest run, if there is
// one. It becomes `program`, so that Slurm's signals reach that.
std::string job_script(const std::filesystem::path& program, const TrialFolder& folder, const JobWords& words);

// The name that all jobs of the sweep in this folder have.
std::string job_name(const std::filesystem::path& sweep);

}  // namespace headroom
