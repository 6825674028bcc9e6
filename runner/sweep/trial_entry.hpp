// A trial in the supervisor's hands.
#pragma once

#include <chrono>
#include <sys/types.h>

#include "sweep/admission.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep_view.hpp"

namespace headroom {

struct TrialEntry {
  TrialEntry(const std::filesystem::path& sweep, const Trial& trial);

  TrialResult result;
  TrialFolder folder;
  std::string cgroup;      // the name of its own
  bool looked_at = false;  // shape and limit are known
  TrialShape shape;
  std::string limit;                           // memory.limit of its experiment
  pid_t child = -1;                            // -1: none, or nobody's any more
  int exit_code = 0;                           // of the child that ended
  std::filesystem::file_time_type began = {};  // of the last attempt; nothing: none of this sweep's
  std::chrono::steady_clock::time_point seen_at = {};
  int64_t seen_step = -1;  // of the black box, when it was first looked at
  int restarts = 0, plans = 0;
  bool plans_alone = false;      // its plan has run out of memory beside other trials
  LimitOutlook outlook;          // of "auto", when its last child was started
  int64_t too_little_bytes = 0;  // a limit beside other runs under which it ran out; 0: none did
  std::string said;              // why it waits, as people were told last
  size_t rung = 0;               // that it may go to
  std::string checkpoint;        // that the last attempt left

  const std::string& id() const { return result.trial->id; }
  TrialState& state() { return result.state; }
  int64_t allowed_bytes() const { return result.record.limit_bytes; }  // 0: not known

  // What is on the disk, unless somebody still works on it: then it settles. True when it has settled.
  bool settle();
  // Shape and limit, from its experiment.
  void look_at();
  // Writes down what the sweep decided.
  void decide(TrialState state, const std::string& why, int exit_code);
  bool has_begun() const;  // the run of the last attempt
  // What of its limit the running trial may still take and has not reserved.
  int64_t unreserved_bytes() const;
  RunningRow row();
};

size_t count(const std::vector<TrialEntry>& entries, bool (*is_such)(TrialState));

}  // namespace headroom
