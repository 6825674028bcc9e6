// Decides whether a trial may start: by its plan, by which trials did not fit before, and by how much memory is free.
// Needs holds the tables of the plans; one plan serves all trials with the same model and data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sweep/sweep_folder.hpp"
#include "sweep/trials.hpp"

namespace headroom {

// The settings of a trial that decide which row of a plan is its own.
struct TrialShape {
  std::string group;  // the settings that a probe depends on; trials with equal text share one
  int64_t batch_size = 1, accumulation = 1;
  int64_t micro_batch = 0;  // 0: auto
  int64_t window() const { return batch_size * accumulation; }
};
TrialShape shape_of(const Settings& settings, const TrainSection& train);

struct Need {
  int64_t peak_bytes = 0;   // predicted
  int64_t least_bytes = 0;  // the least that it can run with
  int64_t micro_batch = 0;  // the one that both figures are for
  bool fits = false;
};

class Needs {
 public:
  // Adds the output of `headroom plan --json` for a trial of that group.
  void add(const std::string& group, const nlohmann::json& plan);

  bool has(const std::string& group) const { return tables_.contains(group); }

  // What a trial needs; nullopt: there is no plan for it yet. `limit_bytes` 0: no limit. For an automatic micro-batch:
  // the largest that fits.
  std::optional<Need> of(const TrialShape& shape, int64_t limit_bytes) const;

 private:
  struct Row {
    int64_t peak_bytes = 0, work_bytes = 0, least_bytes = 0;
  };
  struct Table {
    std::map<std::pair<int64_t, int64_t>, Row> rows;  // by batch size and micro-batch
    bool whole = false;                               // batches cannot be divided
  };
  std::map<std::string, Table> tables_;
};

// Whether `settings` needs at least as much memory as `than`, so that it cannot fit where `than` does not.
bool needs_no_less(const Settings& settings, const Settings& than);

// What a memory.limit amounts to; 0: no limit.
struct LimitOutlook {
  int64_t bytes = 0;        // now
  int64_t later_bytes = 0;  // once the other runs of the machine have ended

  // Whether a trial that ran out of memory under `bytes` may fit later.
  bool depends_on_others() const;
};

class Admission {
 public:
  // `node_bytes`: the memory of the largest machine that trials run on, 0 where it is not known; nullopt: they run on
  // this one.
  explicit Admission(std::optional<int64_t> node_bytes = std::nullopt) : node_bytes_(node_bytes) {}

  enum class Answer { fits, infeasible, pruned, no_plan, later };
  struct Judgement {
    Answer answer = Answer::later;
    std::string why;  // why it is not started; "" where it only waits for other trials
  };

  // Judges a trial by its plan, and fills in the figures of `record`. `limit`: memory.limit of the trial's experiment.
  // `alone`: no other trial runs where this one would, so it can have all that is free there. A trial is not infeasible
  // because of memory that runs outside of the sweep hold: the answer is then `later`, with a sentence.
  Judgement judge(const Trial& trial, const TrialShape& shape, const std::string& limit, bool alone,
                  TrialRecord& record);

  void add_plan(const TrialShape& shape, const nlohmann::json& plan) { needs_.add(shape.group, plan); }
  bool has_plan(const TrialShape& shape) const { return needs_.has(shape.group); }
  void add_infeasible(const Trial& trial) { infeasible_.push_back(&trial); }

  // Begins a round of starts, in which free memory is read once. `expected_bytes`: what running trials may take beyond
  // their reservations.
  void begin_round();
  bool has_room(int64_t needed_bytes, const std::function<int64_t()>& expected_bytes);
  void take(int64_t bytes);

  // The limit "auto" in this round.
  const LimitOutlook& automatic() { return look("auto"); }
  // Whether a trial that ran out of memory under a limit of `too_little_bytes` should try again: clearly more is free
  // now, or no other run is left to wait for.
  bool is_due_again(int64_t too_little_bytes);

 private:
  const LimitOutlook& look(const std::string& limit);
  LimitOutlook outlook(const std::string& limit);  // where trials run

  std::optional<int64_t> node_bytes_;
  Needs needs_;
  std::vector<const Trial*> infeasible_;
  std::map<std::string, LimitOutlook> largest_;   // by memory.limit, when no trial ran
  std::map<std::string, LimitOutlook> of_round_;  // by memory.limit, in this round
  std::optional<int64_t> free_bytes_;
};

}  // namespace headroom
