// What becomes of a trial whose process has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sweep/sweep_folder.hpp"

namespace headroom {

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
