// What trials need of memory - the tables of plans, each of which serves every trial whose model and data are the same
// - and whether a trial may start: by its plan, by what did not fit before, by what is free.
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

// What of a trial decides which row of a plan is its own.
struct TrialShape {
  std::string group;  // settings that decide a probe: equal text, equal probe
  int64_t batch_size = 1, accumulation = 1;
  int64_t micro_batch = 0;  // 0: auto
  int64_t window() const { return batch_size * accumulation; }
};
TrialShape shape_of(const Settings& settings, const TrainSection& train);

struct Need {
  int64_t peak_bytes = 0;   // predicted
  int64_t least_bytes = 0;  // without which it does not run
  int64_t micro_batch = 0;  // that both are predicted for
  bool fits = false;
};

class Needs {
 public:
  // What `headroom plan --json` said of a trial of that group.
  void add(const std::string& group, const nlohmann::json& plan);

  bool has(const std::string& group) const { return tables_.contains(group); }

  // nullopt: no plan tells yet. `limit_bytes` 0: none. Of an automatic micro-batch the largest that fits.
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

// Where the first setting needs at least what the second does, so that it fits nowhere where that does not.
bool needs_no_less(const Settings& settings, const Settings& than);

// What a memory.limit gives; 0: no limit.
struct LimitOutlook {
  int64_t bytes = 0;        // now
  int64_t later_bytes = 0;  // once the other runs of the machine have ended

  // Something failed for want of memory under `bytes`: it may be worth another attempt later.
  bool depends_on_others() const;
};

class Admission {
 public:
  enum class Answer { fits, infeasible, pruned, no_plan, later };
  struct Judgement {
    Answer answer = Answer::later;
    std::string why;  // of what is not started; "" where it only has to wait for trials
  };

  // By its plan: fills in what `record` has of it. `limit`: memory.limit of the trial's experiment. `alone`: nothing of
  // the sweep is running, so that what is free now is what a trial can have. What runs outside of the sweep hold is no
  // reason to call it infeasible: then the answer is `later`, with a sentence.
  Judgement judge(const Trial& trial, const TrialShape& shape, const std::string& limit, bool alone,
                  TrialRecord& record);

  void add_plan(const TrialShape& shape, const nlohmann::json& plan) { needs_.add(shape.group, plan); }
  bool has_plan(const TrialShape& shape) const { return needs_.has(shape.group); }
  void add_infeasible(const Trial& trial) { infeasible_.push_back(&trial); }

  // A round of starts, in which memory is looked at once. `expected_bytes`: what running trials may take beyond their
  // reservations.
  void begin_round();
  bool has_room(int64_t needed_bytes, const std::function<int64_t()>& expected_bytes);
  void take(int64_t bytes);

  // What "auto" gives in this round.
  const LimitOutlook& automatic() { return look("auto"); }
  // Whether what failed for want of memory under a limit of `too_little_bytes` is worth another attempt: there is
  // clearly more now, or nobody is left to wait for.
  bool is_due_again(int64_t too_little_bytes);

 private:
  const LimitOutlook& look(const std::string& limit);

  Needs needs_;
  std::vector<const Trial*> infeasible_;
  std::map<std::string, LimitOutlook> largest_;   // by memory.limit, when no trial ran
  std::map<std::string, LimitOutlook> of_round_;  // the same, as this round has found it
  std::optional<int64_t> free_bytes_;
};

}  // namespace headroom
