#include "sweep/needs.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "config/keys.hpp"
#include "memory/budget.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

// A section ends with the key or at a dot, not inside a name.
bool is_below(std::string_view key, std::string_view section) {
  return key.starts_with(section) && (key.size() == section.size() || key[section.size()] == '.');
}

template <size_t Count>
bool is_one_of(std::string_view key, const std::array<std::string_view, Count>& sections) {
  return std::ranges::any_of(sections, [&](std::string_view section) { return is_below(key, section); });
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

}  // namespace headroom
