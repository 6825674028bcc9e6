// One child of a sweep: `headroom run` or `headroom plan`, which supervises its own trainer, in its own cgroup where
// possible; and what to do with a trial whose process has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sweep/sweep_folder.hpp"

namespace headroom {

// What a trial's surroundings, a cgroup or a job, have to give it for a memory.limit of `limit_bytes`: they count more
// than the trainer's own memory.
int64_t bound_for(int64_t limit_bytes);
// The largest memory.limit that has room in `bound_bytes`; at least 1.
int64_t limit_within(int64_t bound_bytes);

// Makes the memory cgroup of a trial, below the sweep's own, or reuses the one of that name. Its limit, bound_for(), is
// the kernel's backstop behind the limit that the trial keeps itself.
// Empty where none can be made: no rights, or a cgroup (v2) that cannot be divided while it holds processes. `name`:
// unique on this machine. [control]
std::filesystem::path make_trial_cgroup(const std::string& name, int64_t limit_bytes);

// Call it once the trial's processes are gone. A cgroup that still holds some is not removed.
void remove_trial_cgroup(const std::string& name);

// Starts `program` with `words`. Its output is appended to the trial's log. `answer`: a file for its stdout; empty: the
// log. `cgroup`: the cgroup that it is put in; empty: none. The child and its children hold `lock`
// (TrialFolder::try_lock()) until the last of them is gone, and get SIGTERM when this process dies. Closes `lock`.
// Error(bug) when it cannot be started; Error(cannot_write) when the log cannot be opened.
pid_t start_trial_process(const std::filesystem::path& program, const std::vector<std::string>& words,
                          const TrialFolder& folder, int lock, const std::filesystem::path& answer = {},
                          const std::filesystem::path& cgroup = {});

// How the process of a trial ended.
struct TrialEnd {
  int exit_code = 0;        // 128 + signal where one ended the supervisor itself
  bool oom_kill = false;    // the kernel or Slurm killed it for lack of memory
  bool in_setup = false;    // before its first batch
  int64_t micro_batch = 0;  // the last one that it used
  std::string sentence;     // the last line of its log
  bool ran_out() const;     // out of memory
};

// Reads, from `folder` and the log, how the attempt ended that began at `began` and exited with `exit_code`.
TrialEnd read_trial_end(const TrialFolder& folder, const TrialRecord& record, int exit_code,
                        std::filesystem::file_time_type began);

enum class Verdict { finished, go_on, retry_smaller, failed };

// Exit 5 and a kill by the kernel are retried once, with a smaller micro-batch. A trial that was stopped or killed
// otherwise is resumed. So is one that ran out of memory before its first batch, since no batch was too large for it.
Verdict judge(const TrialEnd& end, const TrialRun& run, const TrialRecord& record);

// Detects that many trials fail for the same reason.
class FailureStorm {
 public:
  void add_success() { ++ended_; }
  void add_failure(const std::string& sentence);
  // The sentence with which at least 3 trials, and three quarters of all that ended, failed.
  const std::optional<std::string>& sentence() const { return sentence_; }

 private:
  size_t ended_ = 0;
  std::map<std::string, size_t> failures_;
  std::optional<std::string> sentence_;
};

}  // namespace headroom
