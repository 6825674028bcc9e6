// Which trials start, and when: by their plans, by what is free, by how many may run at once.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweep/admission.hpp"
#include "sweep/halving.hpp"
#include "sweep/trial_entry.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {

// Successive halving in a sweep that goes on: who waits at the end of a rung, who goes on, who never will. Without
// halving nothing of it does anything. Keeps nothing that the trials' records do not say.
class SweepRungs {
 public:
  SweepRungs(const Halving& halving, std::vector<TrialEntry>& entries) : halving_(halving), entries_(entries) {}

  // Of a trial that has settled. Where it has come to the end of its rung, that is written down; true where it is to
  // wait there.
  bool pause(TrialEntry& entry) const;
  // Opens the trials that may go on by now.
  void promote();
  // No rung will change any more: whoever waits is dropped.
  void drop() const;
  // Where the trial is to stop; 0: at its own end.
  int64_t until_epoch(const TrialEntry& entry) const;

 private:
  const Halving& halving_;
  std::vector<TrialEntry>& entries_;
  size_t known_ = 0;  // metrics and ends at the last promote()
};

class TrialStarts {
 public:
  TrialStarts(std::filesystem::path program, const SweepPlan& plan, std::vector<TrialEntry>& entries,
              const SweepRungs& rungs, SweepView& view)
      : program_(std::move(program)), plan_(plan), entries_(entries), rungs_(rungs), view_(view) {}

  // One after the other, the highest rung first.
  void start_what_fits();
  // Of an entry whose planning has ended: what it failed with, where that is no question of memory. `is_stopping`:
  // nothing is to be made of it any more.
  std::optional<TrialEnd> take_plan(TrialEntry& entry, bool is_stopping);
  // Writes down and says what becomes of a trial.
  void decide(TrialEntry& entry, TrialState state, const std::string& why, int exit_code = 0);
  // Of an entry whose child ended for want of memory: true where others, also trials, held what it lacked when it
  // started. Then it starts again when there is clearly more, or when they have ended.
  bool waits_for_other_runs(TrialEntry& entry);
  // That it was found not to fit in an earlier life of this sweep.
  void add_infeasible(const Trial& trial) { admission_.add_infeasible(trial); }

  size_t started() const { return started_; }  // processes of trials
  std::chrono::steady_clock::duration starting_them() const { return starting_; }

 private:
  bool may_start(TrialEntry& entry);
  bool fits(TrialEntry& entry, bool alone);
  void ask_for_plan(TrialEntry& entry);
  void start(TrialEntry& entry);
  bool has_room(int64_t bytes);
  bool is_due(const TrialEntry& entry);
  void say_once(TrialEntry& entry, const std::string& why);
  // `limit`: its memory.limit, empty: as its experiment says.
  std::vector<std::string> words_of(const TrialEntry& entry, const std::string& limit) const;
  void add_plugin_dirs(std::vector<std::string>& words) const;
  bool start_child(TrialEntry& entry, const std::vector<std::string>& words, const std::filesystem::path& answer,
                   const std::filesystem::path& cgroup, TrialState state);
  int64_t expected_bytes() const;

  std::filesystem::path program_;
  const SweepPlan& plan_;
  std::vector<TrialEntry>& entries_;
  const SweepRungs& rungs_;
  SweepView& view_;
  Admission admission_;
  bool plan_has_company_ = false;  // other trials run, or have begun to, while one is planned
  size_t started_ = 0;
  std::chrono::steady_clock::duration starting_ = {};
};

}  // namespace headroom
