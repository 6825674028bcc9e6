// One child of a sweep: `headroom run` or `headroom plan`, which supervises its own trainer, in a cgroup of its own
// where there can be one; and what becomes of a trial whose process has ended.
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

// What was seen of the end.
struct TrialEnd {
  int exit_code = 0;        // 128 + signal where one ended the supervisor itself
  bool oom_kill = false;    // the kernel killed it for lack of memory
  bool in_setup = false;    // before its first batch
  int64_t micro_batch = 0;  // that it worked with last
  std::string sentence;     // what it said last
  bool ran_out() const;     // of memory
};

// What `folder` and its log tell of the attempt that ended with `exit_code` and began at `began`.
TrialEnd read_trial_end(const TrialFolder& folder, const TrialRecord& record, int exit_code,
                        std::filesystem::file_time_type began);

enum class Verdict { finished, go_on, retry_smaller, failed };

// Exit 5 and a kernel's kill are retried once at a smaller micro-batch; whatever was stopped or killed goes on, and so
// does what ran out of memory before its first batch: no batch was too large for it.
Verdict judge(const TrialEnd& end, const TrialRun& run, const TrialRecord& record);

// Many trials that fail alike are one mistake.
class FailureStorm {
 public:
  void add_success() { ++ended_; }
  void add_failure(const std::string& sentence);
  // The sentence that at least 3 trials, and three quarters of all that ended, failed with.
  const std::optional<std::string>& sentence() const { return sentence_; }

 private:
  size_t ended_ = 0;
  std::map<std::string, size_t> failures_;
  std::optional<std::string> sentence_;
};

}  // namespace headroom
