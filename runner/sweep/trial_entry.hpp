// The supervisor's state of one trial.
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
  std::string cgroup;      // the name of the trial's own cgroup
  bool looked_at = false;  // shape and limit are known
  TrialShape shape;
  std::string limit;                           // memory.limit of its experiment
  pid_t child = -1;                            // -1: none
  int exit_code = 0;                           // of the child that ended
  std::filesystem::file_time_type began = {};  // when the last attempt began; zero: this sweep process made none
  std::chrono::steady_clock::time_point seen_at = {};
  int64_t seen_step = -1;  // in the black box, when first read
  int restarts = 0, plans = 0;
  bool plans_alone = false;      // its plan ran out of memory while other trials ran
  LimitOutlook outlook;          // of "auto", when its last child was started
  int64_t too_little_bytes = 0;  // the limit, reduced by other runs, that was too little; 0: none was
  std::string said;              // why it waits, as last reported
  size_t rung = 0;               // the one that it may run to
  std::string checkpoint;        // the one that the last attempt left
  std::string queued;            // what its job waits for: "job 12 pending: Resources"; "" where it runs

  const std::string& id() const { return result.trial->id; }
  TrialState& state() { return result.state; }
  int64_t allowed_bytes() const { return result.record.limit_bytes; }  // 0: not known
  // Its run is a job of Slurm's, which goes on without the sweep.
  bool is_job() const { return result.record.job > 0 && result.state == TrialState::running; }

  // Takes the trial's state from the disk, unless a process still works on it: the state is then `settling`. Returns
  // true when the state was taken.
  bool settle();
  // It has a job from now on, which a sweep that is started anew finds in the record.
  void take_job(int64_t id);
  // Reads shape and limit from its experiment.
  void look_at();
  // Records what the sweep decided about it.
  void decide(TrialState state, const std::string& why, int exit_code);
  bool has_begun() const;  // the run of the last attempt
  // The part of its limit that the running trial may still take and has not reserved.
  int64_t unreserved_bytes() const;
  RunningRow row();
};

size_t count(const std::vector<TrialEntry>& entries, bool (*is_such)(TrialState));

}  // namespace headroom
