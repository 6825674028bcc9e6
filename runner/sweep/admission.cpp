#include "sweep/admission.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "config/keys.hpp"
#include "memory/budget.hpp"
#include "memory/limits.hpp"
#include "memory/readable.hpp"
#include "memory/reservations.hpp"
#include "memory/start_queue.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

// A plan's table has a row for each; the accumulation alone costs nothing.
constexpr std::array in_the_table =
    std::to_array<std::string_view>({"train.batch_size", "train.gradient_accumulation_steps", "train.micro_batch"});

// More of any of these is more memory.
constexpr std::array growing = std::to_array<std::string_view>(
    {"train.batch_size", "train.micro_batch", "data.num_workers", "data.prefetch_factor"});

constexpr int64_t furthest_probe = 16;  // samples: smaller windows are probed for themselves

}  // namespace

TrialShape shape_of(const Settings& settings, const TrainSection& train) {
  TrialShape shape{.group = "",
                   .batch_size = train.batch_size,
                   .accumulation = train.gradient_accumulation_steps,
                   .micro_batch = train.micro_batch};
  for (const auto& [key, value] : settings) {
    // What no probe sees, and what has a row in every table, needs no plan of its own.
    if (is_probed(key) && !is_one_of(key, in_the_table)) shape.group += key + "=" + value + ";";
  }
  shape.group += std::to_string(std::min(shape.window(), furthest_probe));
  return shape;
}

void Needs::add(const std::string& group, const Json& plan) {
  Table& table = tables_[group];
  table.whole = plan.contains("why_whole");
  const auto add_row = [&](const Json& row) {
    table.rows[{row.at("batch_size"), row.at("micro_batch")}] = {row.at("predicted_peak_bytes"), row.at("work_bytes"),
                                                                 row.at("least_bytes")};
  };
  for (const Json& row : plan.at("rows")) add_row(row);
  // A fixed micro-batch need not be one of the halvings that the rows have.
  add_row(plan.at("as_written"));
}

std::optional<Need> Needs::of(const TrialShape& shape, int64_t limit_bytes) const {
  const auto table = tables_.find(shape.group);
  if (table == tables_.end()) return std::nullopt;
  const bool fixed = shape.micro_batch > 0 || table->second.whole;
  int64_t size = shape.batch_size;
  if (shape.micro_batch > 0 && !table->second.whole) size = std::min(shape.micro_batch, shape.batch_size);
  // As `run` judges: what is read ahead and cached is given up before the micro-batch is.
  const int64_t bound = limit_bytes == 0 ? INT64_MAX : limit_bytes - cushion_bytes(limit_bytes);
  std::optional<Need> tight;
  // As a run halves its micro-batch (MicroBatch::halve()).
  for (;; size = (size + 1) / 2) {
    const auto row = table->second.rows.find({shape.batch_size, size});
    if (row == table->second.rows.end()) return std::nullopt;
    const bool last = fixed || size == 1;
    const Row& figures = row->second;
    const Need need{figures.peak_bytes, figures.least_bytes, size, figures.least_bytes <= bound};
    if (figures.work_bytes <= bound) return need;
    if (!tight && need.fits) tight = need;
    if (last) return tight.value_or(need);
  }
}

bool needs_no_less(const Settings& settings, const Settings& than) {
  // "auto" becomes 0: an automatic micro-batch can be made as small as it has to be.
  const auto number = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  return std::ranges::all_of(settings, [&](const auto& setting) {
    const auto& [key, value] = setting;
    const auto other = std::ranges::find(than, key, &Settings::value_type::first);
    if (other == than.end()) return false;
    if (key == "memory.limit") return value == other->second;
    if (!is_probed(key) || key == "train.gradient_accumulation_steps") return true;
    return is_one_of(key, growing) ? number(value) >= number(other->second) : value == other->second;
  });
}

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

// A job has a machine of the cluster for itself, up to the size that Slurm gives it.
LimitOutlook outlook_on_node(const std::string& limit, int64_t node_bytes) {
  Rooms rooms;
  if (node_bytes > 0) {
    rooms.rooms.push_back(
        {.name = "the cluster's largest node", .scope = "node", .bound_bytes = node_bytes, .room_bytes = node_bytes});
  }
  int64_t bytes = decide_limit(limit, rooms).bytes.value_or(0);
  if (node_bytes > 0 && bytes > 0) bytes = std::min(bytes, limit_within(node_bytes));
  return {bytes, bytes};
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

LimitOutlook Admission::outlook(const std::string& limit) {
  return node_bytes_ ? outlook_on_node(limit, *node_bytes_) : look(limit);
}

bool Admission::is_due_again(int64_t too_little_bytes) {
  const int64_t enough = clearly_more_than(too_little_bytes);
  return automatic().bytes >= enough || automatic().later_bytes < enough;
}

Admission::Judgement Admission::judge(const Trial& trial, const TrialShape& shape, const std::string& limit, bool alone,
                                      TrialRecord& record) {
  if (alone) {
    largest_.insert_or_assign(limit, outlook(limit));
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
