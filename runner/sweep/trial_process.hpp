// One child of a sweep: `headroom run` or `headroom plan`, which supervises its own trainer, in a cgroup of its own
// where there can be one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sweep/sweep_folder.hpp"

namespace headroom {

// A memory cgroup for one trial, below the sweep's own: the kernel's bound behind the limit that the trial keeps
// itself. Makes one, or takes the one of that name, with room for a trial whose memory.limit is `limit_bytes`. Empty
// where none can be made: no rights, or a cgroup (v2) that cannot divide what it has while it holds processes. `name`:
// unique on this machine. [control]
std::filesystem::path make_trial_cgroup(const std::string& name, int64_t limit_bytes);

// Once the trial's processes are gone; leaves one alone that still holds some.
void remove_trial_cgroup(const std::string& name);

// Starts `program` with `words`, its output appended to the trial's log; stdout to `answer` and all of it
// into `cgroup` where these are not empty.
// The child and its children hold `lock` (TrialFolder::try_lock()) until the last of them is gone, and are asked to
// stop when this process dies. Closes `lock`. Error(bug) when it cannot be started; Error(cannot_write) without a log.
pid_t start_trial_process(const std::filesystem::path& program, const std::vector<std::string>& words,
                          const TrialFolder& folder, int lock, const std::filesystem::path& answer = {},
                          const std::filesystem::path& cgroup = {});

}  // namespace headroom
