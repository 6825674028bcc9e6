// The trainer's side of its supervisor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headroom {

// [control] First thing in main: this process is told (SIGTERM) when its supervisor dies, the kernel picks it before
// its supervisor when memory runs out, and a terminal that closes leaves the word to the supervisor, which asks to
// stop.
void become_supervised();

// [control] First thing in a `headroom` that a sweep starts, which names itself in the environment: this process is
// told (SIGTERM) when the sweep dies, and saves and ends; where it has been given a cgroup it moves there. Anywhere
// else it does nothing.
void become_trial();

// [control] After become_supervised(), once: where the black box is and the post-mortem goes. Does nothing without a
// supervisor.
void tell_supervisor_run_folder(const std::filesystem::path& folder);

// [control] A trainer begins under an RLIMIT_DATA of what its cgroup leaves, so that libraries that do not fit are
// refused instead of killed. Called when a limit of its own has been set: the user's RLIMIT_DATA is in force again.
void lift_start_limit();

// [any] The RLIMIT_DATA (soft) that the user set, RLIM_INFINITY where none, whatever is in force in a trainer. nullopt:
// this process was not started by a supervisor.
std::optional<uint64_t> users_data_limit();

// NAME= of the environment variables with the descriptor to tell on, and with the user's RLIMIT_DATA.
inline constexpr const char* supervisor_variable = "HEADROOM_SUPERVISOR_FD=";
inline constexpr const char* data_limit_variable = "HEADROOM_DATA_LIMIT=";

// NAME= of those with a sweep's process id, and with the folder of its child's cgroup.
inline constexpr const char* sweep_variable = "HEADROOM_SWEEP_PID=";
inline constexpr const char* cgroup_variable = "HEADROOM_SWEEP_CGROUP=";

// What the trainer tells before anything else: its libraries are there.
inline constexpr char begun_mark = '\n';

}  // namespace headroom
