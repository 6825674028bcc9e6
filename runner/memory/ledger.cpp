#include "memory/ledger.hpp"

#include <algorithm>
#include <atomic>

#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {

namespace {

constexpr std::array<std::string_view, owner_count> names = {"parameters", "gradients", "optimizer", "activations",
                                                             "batches",    "cache",     "metrics",   "checkpoint",
                                                             "reads",      "scratch",   "workers"};

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

// At most what is there; returns what was taken.
int64_t take_from(int64_t& figure, int64_t bytes) {
  const int64_t taken = std::clamp<int64_t>(bytes, 0, std::max<int64_t>(figure, 0));
  figure -= taken;
  return taken;
}

// `bytes` less in the figures of a reading that are not `other`: slack and activations first, which come and go.
// Returns what was taken.
int64_t leave_out(LedgerReading& reading, int64_t bytes) {
  int64_t taken = take_from(reading.slack_bytes, bytes);
  taken += take_from(reading.live_bytes[static_cast<size_t>(Owner::activations)], bytes - taken);
  for (int64_t& live : reading.live_bytes) taken += take_from(live, bytes - taken);
  return taken;
}

void leave_out(LedgerReading& reading, Owner owner, int64_t bytes) {
  const int64_t taken = take_from(reading.live_bytes[static_cast<size_t>(owner)], bytes);
  leave_out(reading, bytes - taken);
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
  const UntouchedBytes untouched = read_untouched();
  reading.held_bytes = held_bytes();
  note_held(reading.held_bytes);
  reading.peak_held_bytes = peak_held.load(std::memory_order_relaxed);
  // Spare pages are mapped and unused, and never written, so the kernel does not count them.
  reading.slack_bytes = std::max<int64_t>(ask(mapped_reader) - ask(lent_reader) - untouched.of(PageUse::spare), 0);
  for (size_t i = 0; i < owner_count; ++i) {
    reading.live_bytes[i] = counters[i].live.load(std::memory_order_relaxed);
    reading.peak_bytes[i] = counters[i].peak.load(std::memory_order_relaxed);
  }
  leave_out(reading, Owner::batches, untouched.of(PageUse::batches));
  leave_out(reading, Owner::cache, untouched.of(PageUse::cache));
  // Whose tensors these pages lie in is not known.
  leave_out(reading, untouched.of(PageUse::tensors));
  int64_t known = reading.slack_bytes;
  for (const int64_t bytes : reading.live_bytes) known += bytes;
  // Something may have gone while all this was read.
  known -= leave_out(reading, known - reading.held_bytes);
  reading.other_bytes = reading.held_bytes - known;
  return reading;
}

void note_held(int64_t held_bytes) { raise(peak_held, held_bytes); }

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
