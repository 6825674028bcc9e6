// Whether a trial may start: by its plan, by what did not fit before, by what is free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sweep/needs.hpp"
#include "sweep/sweep_folder.hpp"

namespace headroom {

class Admission {
 public:
  enum class Answer { fits, infeasible, pruned, no_plan, later };
  struct Judgement {
    Answer answer = Answer::later;
    std::string why;  // of what is not started
  };

  // By its plan: fills in what `record` has of it. `limit`: memory.limit of the trial's experiment. `alone`: nothing of
  // the sweep is running, so that what is free now is what a trial can have.
  Judgement judge(const Trial& trial, const TrialShape& shape, const std::string& limit, bool alone,
                  TrialRecord& record);

  void add_plan(const TrialShape& shape, const nlohmann::json& plan) { needs_.add(shape.group, plan); }
  bool has_plan(const TrialShape& shape) const { return needs_.has(shape.group); }
  void add_infeasible(const Trial& trial) { infeasible_.push_back(&trial); }

  // A round of starts, in which memory is looked at once. `expected_bytes`: what running trials may take beyond their
  // reservations.
  void begin_round() { free_bytes_.reset(); }
  bool has_room(int64_t needed_bytes, const std::function<int64_t()>& expected_bytes);
  void take(int64_t bytes);

 private:
  Needs needs_;
  std::vector<const Trial*> infeasible_;
  std::map<std::string, int64_t> largest_bytes_;  // by memory.limit
  std::optional<int64_t> free_bytes_;
};

}  // namespace headroom
