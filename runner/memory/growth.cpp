#include "memory/growth.hpp"

#include <algorithm>
#include <span>

#include "memory/readable.hpp"

namespace headroom {

namespace {

// The index after the owners stands for memory without an owner.
int64_t held_by(const LedgerReading& reading, size_t i) {
  return i < owner_count ? reading.live_bytes[i] : reading.other_bytes;
}

}  // namespace

std::optional<std::string> LeakWatch::after_window(const LedgerReading& reading) {
  if (seen_++ == 0) {
    begin(reading);
    return std::nullopt;
  }
  for (size_t i = 0; i < held_.size(); ++i) {
    const int64_t now = held_by(reading, i);
    held_[i].rises += now > held_[i].last ? 1 : 0;
    held_[i].last = now;
  }
  // The first reading is only compared with: 50 windows are 51 readings.
  if (seen_ <= windows) return std::nullopt;
  std::optional<std::string> sentence;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (i == static_cast<size_t>(Owner::cache)) continue;  // fills up to a limit of its own
    Held& held = held_[i];
    const int64_t grown = held.last - held.first;
    // One at a time: another owner that leaks still does over the next 50 windows.
    if (sentence || held.named || held.rises < least_rises || grown < least_bytes) continue;
    held.named = true;
    const std::string who =
        i < owner_count ? "the " + std::string(owner_name(static_cast<Owner>(i))) + " hold"
                        : "memory that no tensor, batch or cache accounts for (a plugin's own, or a library's) holds";
    sentence = "leak: " + who + " " + size_text(grown) + " more than " + std::to_string(windows) +
               " windows ago, and rose in " + std::to_string(held.rises) + " of them; now " + size_text(held.last);
  }
  // This reading is the first of the next 50 windows.
  begin(reading);
  seen_ = 1;
  return sentence;
}

void LeakWatch::begin(const LedgerReading& reading) {
  for (size_t i = 0; i < held_.size(); ++i) {
    held_[i].first = held_[i].last = held_by(reading, i);
    held_[i].rises = 0;
  }
}

namespace {

// Numbers of holders, behind those of the owners.
constexpr size_t slack = owner_count, other = owner_count + 1;

int64_t largest(std::span<const BlackBoxRecord> records, size_t holder) {
  int64_t bytes = 0;
  for (const BlackBoxRecord& record : records) bytes = std::max(bytes, holder_bytes(record, holder));
  return bytes;
}

}  // namespace

std::string_view holder_name(size_t holder) {
  if (holder == slack) return "slack";
  if (holder == other) return "other";
  return owner_name(static_cast<Owner>(holder));
}

int64_t holder_bytes(const BlackBoxRecord& record, size_t holder) {
  if (holder == slack) return record.slack_bytes;
  if (holder == other) return record.other_bytes;
  return record.live_bytes[holder];
}

std::string_view holder_knob(size_t holder) {
  if (holder == slack) return "memory.empty_cache_every (a smaller number)";
  if (holder == other) return "experiment.threads or data.num_workers (fewer)";
  switch (static_cast<Owner>(holder)) {
    case Owner::parameters:
    case Owner::gradients:
      return "model.options (a smaller model)";
    case Owner::optimizer:
      return "train.optimizer.name = \"sgd\" (keeps less per weight; another optimizer)";
    case Owner::activations:
      return "train.micro_batch (smaller: slower, the same mathematics)";
    case Owner::batches:
      return "data.prefetch_factor or data.num_workers (fewer batches read ahead)";
    case Owner::cache:
      return "data.cache_size (smaller: slower reading)";
    case Owner::metrics:
      return "metrics.mode = \"online\" (constant memory)";
    case Owner::checkpoint:
      return "checkpoint.every_steps (fewer checkpoints)";
    case Owner::reads:
      return "data.num_workers (fewer threads that read)";
    case Owner::scratch:
      return "model.options and data.options (the plugins' own memory)";
    case Owner::workers:
      return "data.num_workers (fewer processes that read)";
  }
  // For the compiler: the switch has all owners.
  return "";
}

std::vector<size_t> largest_holders(const BlackBoxRecord& record) {
  std::vector<size_t> holders;
  for (size_t holder = 0; holder < holder_count; ++holder) {
    if (holder_bytes(record, holder) > 0) holders.push_back(holder);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [&](size_t a, size_t b) { return holder_bytes(record, a) > holder_bytes(record, b); });
  return holders;
}

std::optional<Growth> what_grew(const std::vector<BlackBoxRecord>& records) {
  constexpr int64_t least_bytes = 1 << 20;
  if (records.size() < 2) return std::nullopt;
  const std::span all(records);
  // The quarter is rounded up: even of two records it has one.
  const auto before = all.first(records.size() / 2), after = all.last((records.size() + 3) / 4);
  Growth growth{.holder = 0,
                .rise_bytes = 0,
                .seconds = static_cast<double>(records.back().time_ms - records.front().time_ms) / 1000.0};
  for (size_t holder = 0; holder < holder_count; ++holder) {
    const int64_t rise = largest(after, holder) - largest(before, holder);
    if (rise > growth.rise_bytes) growth.holder = holder, growth.rise_bytes = rise;
  }
  if (growth.rise_bytes < least_bytes) return std::nullopt;
  return growth;
}

}  // namespace headroom
