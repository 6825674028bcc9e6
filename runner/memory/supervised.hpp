// The child's side of supervision: what the trainer (or a trial of a sweep) calls to report to its parent, and to end
// when the parent ends. The parent's side is supervisor.hpp; the constants below are the protocol between them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headroom {

// Call it first in the trainer's main(), right after the tensor allocator. From then on the trainer gets SIGTERM when
// its supervisor dies, at once if it is dead already (the environment says who it was). The kernel's OOM killer prefers
// it to its supervisor (trainer_oom_rise). It ignores SIGHUP: the supervisor gets that and sends SIGTERM. Memory that
// is mapped but not written so far does not count against its start limit (lift_start_limit). [control]
void become_supervised();

// The kernel's OOM killer weighs what a process holds, and adds a score to it, in thousandths of all memory
// (proc_pid_oom_score_adj(5)). By these scores it takes first the processes that read for a trainer, which have 1000
// and whose loss costs nothing; then a probe; then a trainer; and then its supervisor. A larger one may still go first:
// a trainer that holds nine tenths of all more than a process that reads.
inline constexpr int trainer_oom_rise = 100, probe_oom_rise = 200;

// Adds to this process's score, which never falls: that needs no privilege. [control]
void raise_oom_score(int rise);

// Call it first in `headroom`'s main(). Where a sweep started the process (the environment says so), it gets SIGTERM
// when the sweep dies, and moves into the cgroup that the sweep made for it, if any. Otherwise it does nothing.
// [control]
void become_trial();

// Reports the run folder to the supervisor, which finds the black box there and writes the post-mortem there. Once,
// after become_supervised(). Does nothing without a supervisor. [control]
void tell_supervisor_run_folder(const std::filesystem::path& folder);

// Restores the user's RLIMIT_DATA. A supervised trainer starts with a lower one, what its cgroup leaves, so that
// loading libraries fails with an error instead of a kill. Call it once the memory limit is set. [control]
void lift_start_limit();

// The RLIMIT_DATA (soft) that the user set, in bytes, or RLIM_INFINITY; it may differ from the one in force. nullopt:
// no supervisor started this process. [any]
std::optional<uint64_t> users_data_limit();

// "NAME=" of the environment variables that hold the descriptor to write to, the supervisor's process id, and the
// user's RLIMIT_DATA.
inline constexpr const char* supervisor_variable = "HEADROOM_SUPERVISOR_FD=";
inline constexpr const char* parent_variable = "HEADROOM_SUPERVISOR_PID=";
inline constexpr const char* data_limit_variable = "HEADROOM_DATA_LIMIT=";

// "NAME=" of those that hold a sweep's process id, and the folder of the cgroup that it made for its child.
inline constexpr const char* sweep_variable = "HEADROOM_SWEEP_PID=";
inline constexpr const char* cgroup_variable = "HEADROOM_SWEEP_CGROUP=";

// The first byte the trainer writes to that descriptor: its libraries are loaded. The run folder's path follows.
inline constexpr char begun_mark = '\n';

}  // namespace headroom
