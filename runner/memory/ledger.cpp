#include "memory/ledger.hpp"

#include <algorithm>
#include <atomic>

#include "memory/held.hpp"
#include "memory/size_text.hpp"

namespace headroom {

namespace {

constexpr std::array<std::string_view, owner_count> names = {
    "parameters", "gradients", "optimizer", "activations", "batches", "cache", "metrics", "checkpoint", "scratch"};

// A line of its own for each: threads that account for different owners do not disturb one another.
struct alignas(64) Counter {
  std::atomic<int64_t> live{0}, peak{0}, recent_peak{0};
};

std::array<Counter, owner_count> counters;
std::atomic<int64_t> peak_held{0};
std::atomic<int64_t (*)()> mapped_reader{nullptr}, lent_reader{nullptr};
thread_local Owner owner_of_thread = Owner::activations;

void raise(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

int64_t ask(const std::atomic<int64_t (*)()>& reader) {
  const auto function = reader.load();
  return function != nullptr ? function() : 0;
}

}  // namespace

std::string_view owner_name(Owner owner) { return names[static_cast<size_t>(owner)]; }

OwnerScope::OwnerScope(Owner owner) : before_(owner_of_thread) { owner_of_thread = owner; }
OwnerScope::~OwnerScope() { owner_of_thread = before_; }

Owner current_owner() { return owner_of_thread; }

void account(Owner owner, int64_t delta_bytes) {
  Counter& counter = counters[static_cast<size_t>(owner)];
  const int64_t live = counter.live.fetch_add(delta_bytes, std::memory_order_relaxed) + delta_bytes;
  if (delta_bytes <= 0) return;
  raise(counter.peak, live);
  raise(counter.recent_peak, live);
}

LedgerReading read_ledger() {
  LedgerReading reading;
  reading.held_bytes = held_bytes();
  raise(peak_held, reading.held_bytes);
  reading.peak_held_bytes = peak_held.load(std::memory_order_relaxed);
  reading.slack_bytes = std::max<int64_t>(ask(mapped_reader) - ask(lent_reader), 0);
  int64_t known = reading.slack_bytes;
  for (size_t i = 0; i < owner_count; ++i) {
    reading.live_bytes[i] = counters[i].live.load(std::memory_order_relaxed);
    reading.peak_bytes[i] = counters[i].peak.load(std::memory_order_relaxed);
    known += reading.live_bytes[i];
  }
  reading.other_bytes = reading.held_bytes - known;
  return reading;
}

std::string ledger_line(const LedgerReading& reading) {
  std::string line;
  const auto add = [&](std::string_view name, int64_t bytes) {
    if (bytes == 0) return;
    line.append(line.empty() ? "" : ", ").append(name).append(" ").append(size_text(bytes));
  };
  for (size_t i = 0; i < owner_count; ++i) add(names[i], reading.live_bytes[i]);
  add("slack", reading.slack_bytes);
  add("other", reading.other_bytes);
  return line + " = " + size_text(reading.held_bytes);
}

void reset_ledger_peaks() {
  for (Counter& counter : counters) counter.peak = counter.live.load();
  peak_held = held_bytes();
}

int64_t take_recent_peak(Owner owner) {
  Counter& counter = counters[static_cast<size_t>(owner)];
  return counter.recent_peak.exchange(counter.live.load());
}

void set_mapped_reader(int64_t (*mapped_bytes)(), int64_t (*lent_bytes)()) {
  mapped_reader = mapped_bytes;
  lent_reader = lent_bytes;
}

}  // namespace headroom
