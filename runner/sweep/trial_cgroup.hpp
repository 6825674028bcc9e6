// A memory cgroup for one trial, below the sweep's own: the kernel's bound behind the limit that the trial keeps
// itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headroom {

// Makes one, or takes the one of that name, with room for a trial whose memory.limit is `limit_bytes`. Empty where none
// can be made: no rights, or a cgroup (v2) that cannot divide what it has while it holds processes. `name`: unique on
// this machine. [control]
std::filesystem::path make_trial_cgroup(const std::string& name, int64_t limit_bytes);

// Once the trial's processes are gone; leaves one alone that still holds some.
void remove_trial_cgroup(const std::string& name);

}  // namespace headroom
