// Decides which trials start and when: by their plans, by free memory, and by how many may run at once.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sweep/admission.hpp"
#include "sweep/halving.hpp"
#include "sweep/slurm_jobs.hpp"
#include "sweep/trial_entry.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {

// Applies successive halving to the trials of a running sweep: which pause at the end of a rung, which are promoted,
// which are dropped. Does nothing without halving. All of its state is in the trials' records.
class SweepRungs {
 public:
  SweepRungs(const Halving& halving, std::vector<TrialEntry>& entries) : halving_(halving), entries_(entries) {}

  // Call it for a trial that has settled. Where it reached the end of its rung, records that; returns true where it has
  // to wait there.
  bool pause(TrialEntry& entry) const;
  // Makes trials startable that are promoted by now.
  void promote();
  // Call it when no rung can change any more: drops the trials that wait.
  void drop() const;
  // The epoch that the trial stops at; 0: at its own end.
  int64_t until_epoch(const TrialEntry& entry) const;

 private:
  const Halving& halving_;
  std::vector<TrialEntry>& entries_;
  size_t known_ = 0;  // metrics and ends at the last promote()
};

class TrialStarts {
 public:
  // `slurm`: runs of trials become its jobs; nullptr: they are children of this process. Plans are children in any
  // case.
  TrialStarts(std::filesystem::path program, const SweepPlan& plan, std::vector<TrialEntry>& entries,
              const SweepRungs& rungs, SweepView& view, SlurmJobs* slurm = nullptr);

  // Starts the trials that fit, one after the other, those of the highest rung first.
  void start_what_fits();
  // The trials whose jobs Slurm refused for good since the last call, and its words.
  std::vector<std::pair<TrialEntry*, TrialEnd>> take_refused() { return std::exchange(refused_, {}); }
  // Tells it that a job has ended: Slurm may take one now that it refused before.
  void add_job_end() { waits_for_job_end_ = false; }
  // Takes the result of an entry's planning, which has ended. Returns how it failed, where memory was not the reason.
  // `is_stopping`: the result is ignored.
  std::optional<TrialEnd> take_plan(TrialEntry& entry, bool is_stopping);
  // Records and reports the decision about a trial.
  void decide(TrialEntry& entry, TrialState state, const std::string& why, int exit_code = 0);
  // Call it for an entry whose child ran out of memory. Returns true where other runs or trials held the memory that it
  // lacked: it starts again when clearly more is free, or when they have ended.
  bool waits_for_other_runs(TrialEntry& entry);
  // Tells it that an earlier process of this sweep found this trial infeasible.
  void add_infeasible(const Trial& trial) { admission_.add_infeasible(trial); }

  size_t started() const { return started_; }  // processes of trials
  std::chrono::steady_clock::duration starting_them() const { return starting_; }

 private:
  bool may_start(TrialEntry& entry);
  bool fits(TrialEntry& entry, bool alone);
  void ask_for_plan(TrialEntry& entry);
  void start(TrialEntry& entry);
  void submit(TrialEntry& entry);
  void take_refusal(TrialEntry& entry);
  bool has_room(int64_t bytes);
  bool takes_jobs() const;
  bool is_alone() const;  // no other trial runs on this machine
  bool is_due(const TrialEntry& entry);
  void say_once(TrialEntry& entry, const std::string& why);
  // What begins the trial's run, and what is said whether it begins or goes on. `limit`: its memory.limit; empty: as in
  // its experiment.
  std::vector<std::string> begin_words(const TrialEntry& entry) const;
  std::vector<std::string> common_words(const TrialEntry& entry, const std::string& limit) const;
  void add_plugin_dirs(std::vector<std::string>& words) const;
  bool start_child(TrialEntry& entry, const std::vector<std::string>& words, const std::filesystem::path& answer,
                   const std::filesystem::path& cgroup, TrialState state);
  int64_t expected_bytes() const;

  std::filesystem::path program_;
  const SweepPlan& plan_;
  std::vector<TrialEntry>& entries_;
  const SweepRungs& rungs_;
  SweepView& view_;
  SlurmJobs* slurm_;
  Admission admission_;
  bool plan_has_company_ = false;   // other trials run, or have started, while one is planned
  bool waits_for_job_end_ = false;  // Slurm takes no further job of this sweep for now
  std::vector<std::pair<TrialEntry*, TrialEnd>> refused_;
  size_t started_ = 0;
  std::chrono::steady_clock::duration starting_ = {};
};

}  // namespace headroom
