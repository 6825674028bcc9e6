#include "sweep/admission.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "memory/budget.hpp"
#include "memory/limits.hpp"
#include "memory/readable.hpp"
#include "memory/reservations.hpp"
#include "memory/start_queue.hpp"

namespace headroom {

namespace {

// With what other runs have reserved and not taken yet.
Rooms rooms_now() {
  Rooms rooms = read_rooms();
  set_aside(rooms, other_runs());
  return rooms;
}

LimitOutlook outlook_of(const std::string& limit) {
  const std::vector<OtherRun> others = other_runs();
  Rooms now = read_rooms(), later = now;
  set_aside(now, others);
  set_free(later, others);
  return {decide_limit(limit, now).bytes.value_or(0), decide_limit(limit, later).bytes.value_or(0)};
}

// Some more than the plan, for what it cannot see.
int64_t limit_for(int64_t peak_bytes, int64_t largest_bytes) {
  constexpr int64_t furniture_bytes = 32 << 20;
  const int64_t wanted = peak_bytes + peak_bytes / 10 + furniture_bytes;
  return largest_bytes > 0 ? std::min(wanted, largest_bytes) : wanted;
}

bool is_swept(const Trial& trial, std::string_view key) {
  return std::ranges::find(trial.settings, key, &Settings::value_type::first) != trial.settings.end();
}

}  // namespace

bool LimitOutlook::depends_on_others() const { return later_bytes >= clearly_more_than(bytes); }

void Admission::begin_round() {
  free_bytes_.reset();
  of_round_.clear();
}

const LimitOutlook& Admission::look(const std::string& limit) {
  const auto found = of_round_.find(limit);
  return found != of_round_.end() ? found->second : of_round_.emplace(limit, outlook_of(limit)).first->second;
}

bool Admission::is_due_again(int64_t too_little_bytes) {
  const int64_t enough = clearly_more_than(too_little_bytes);
  return automatic().bytes >= enough || automatic().later_bytes < enough;
}

Admission::Judgement Admission::judge(const Trial& trial, const TrialShape& shape, const std::string& limit, bool alone,
                                      TrialRecord& record) {
  if (alone) {
    largest_.insert_or_assign(limit, look(limit));
  } else if (!largest_.contains(limit)) {
    // "auto" follows what is free: while trials run, that says too little of what this one could have.
    if (limit == "auto") return {Answer::later, ""};
    // What other trials hold now is no reason to call one infeasible.
    const int64_t most = limit_if_alone(limit, read_rooms()).bytes.value_or(0);
    largest_[limit] = {most, most};
  }
  const auto [largest, later] = largest_.at(limit);
  const auto need = needs_.of(shape, largest);
  if (need) record.predicted_peak_bytes = need->peak_bytes, record.micro_batch = need->micro_batch;
  // Before the plan is asked for: what is pruned needs none.
  const auto smaller = std::ranges::find_if(
      infeasible_, [&](const Trial* other) { return needs_no_less(trial.settings, other->settings); });
  if (smaller != infeasible_.end())
    return {Answer::pruned, "it needs no less than " + (*smaller)->id + ", which does not fit"};
  if (!need) return {Answer::no_plan, ""};
  if (!need->fits) {
    if (const auto then = needs_.of(shape, later); then && then->fits) {
      // No figure that changes: it is said once.
      return {Answer::later,
              "it needs at least " + size_text(then->least_bytes) + ", which other runs hold now: it waits for them"};
    }
    return {Answer::infeasible, "it needs at least " + size_text(need->least_bytes) + " with micro-batches of " +
                                    std::to_string(need->micro_batch) + ", and memory.limit gives it " +
                                    size_text(largest) + ", of which " + size_text(cushion_bytes(largest)) +
                                    " stay free"};
  }
  // A limit that is swept belongs to the trial, so it stays as it is written.
  record.limit_bytes = is_swept(trial, "memory.limit") ? largest : limit_for(need->peak_bytes, largest);
  return {Answer::fits, ""};
}

bool Admission::has_room(int64_t needed_bytes, const std::function<int64_t()>& expected_bytes) {
  if (!free_bytes_) {
    const Rooms rooms = rooms_now();
    const Room* least = rooms.smallest_shared();
    free_bytes_ = least == nullptr ? INT64_MAX : std::max<int64_t>(least->auto_bytes() - expected_bytes(), 0);
  }
  return needed_bytes <= *free_bytes_;
}

void Admission::take(int64_t bytes) {
  if (free_bytes_) *free_bytes_ -= std::min(bytes, *free_bytes_);
}

}  // namespace headroom
