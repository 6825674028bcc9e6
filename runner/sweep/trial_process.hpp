// One child of a sweep: `headroom run` or `headroom plan`, which supervises its own trainer.
#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sweep/sweep_folder.hpp"

namespace headroom {

// Starts `program` with `words`, its output appended to the trial's log; stdout to `answer` and all of it
// into `cgroup` where these are not empty.
// The child and its children hold `lock` (TrialFolder::try_lock()) until the last of them is gone, and are asked to
// stop when this process dies. Closes `lock`. Error(bug) when it cannot be started; Error(cannot_write) without a log.
pid_t start_trial_process(const std::filesystem::path& program, const std::vector<std::string>& words,
                          const TrialFolder& folder, int lock, const std::filesystem::path& answer = {},
                          const std::filesystem::path& cgroup = {});

}  // namespace headroom
