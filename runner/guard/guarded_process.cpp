#include "guard/guarded_process.hpp"

#include <chrono>
#include <numeric>
#include <pthread.h>
#include <unistd.h>

#include "error.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/limits.hpp"
#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "memory/relief.hpp"
#include "memory/reservations.hpp"
#include "memory/tensor_allocator.hpp"

namespace headroom {

namespace {

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

// Its monitor and what it holds are the parent's. Its memory counts as others' there.
void go_on_without_limit() { set_memory_limit(0); }

MemoryLimit decided(const std::string& wanted) {
  Rooms rooms = read_rooms();
  if (wanted == "auto") set_aside(rooms, other_runs());
  return decide_limit(wanted, rooms);
}

void expect_to_fit(int64_t limit_bytes) {
  give_back_memory(INT64_MAX);
  const int64_t held = held_bytes(), free = cushion_bytes(limit_bytes);
  if (held < limit_bytes - free) return;
  throw Error(Exit::does_not_fit, "headroom.limit",
              "the limit of " + size_text(limit_bytes) + " leaves nothing for tensors: this process holds " +
                  size_text(held) + " already, and " + size_text(free) +
                  " stay free for small things; give it a larger one");
}

BlackBoxRecord record_of(const LedgerReading& ledger) {
  BlackBoxRecord record;
  record.held_bytes = ledger.held_bytes;
  record.limit_bytes = memory_limit();
  record.room_bytes = memory_bound() - ledger.held_bytes;
  record.live_bytes = ledger.live_bytes;
  record.slack_bytes = ledger.slack_bytes;
  record.other_bytes = ledger.other_bytes;
  return record;
}

hr_guard_reading reading_of(const LedgerReading& ledger) {
  return {.time_ms = now_ms(),
          .asked_bytes = 0,
          .limit_bytes = memory_limit(),
          .bound_bytes = memory_bound(),
          .held_bytes = ledger.held_bytes,
          .peak_bytes = ledger.peak_held_bytes,
          .tensor_bytes = std::accumulate(ledger.live_bytes.begin(), ledger.live_bytes.end(), int64_t{0}),
          .kept_bytes = ledger.slack_bytes,
          .other_bytes = ledger.other_bytes};
}

std::string sentence_of(const hr_guard_reading& r) {
  std::string text = "[headroom.limit] no memory for a tensor of " + size_text(r.asked_bytes) +
                     ": this process holds " + size_text(r.held_bytes) + " (tensors " + size_text(r.tensor_bytes);
  if (r.kept_bytes > 0) text += ", freed and kept for the next " + size_text(r.kept_bytes);
  text +=
      ", Python, libraries and the rest " + size_text(r.other_bytes) + ") of its limit of " + size_text(r.limit_bytes);
  if (r.bound_bytes < r.limit_bytes) text += ", of which other processes leave " + size_text(r.bound_bytes);
  return text + "; take smaller batches, let headroom.Accumulator take them in pieces that fit, or give it more memory";
}

}  // namespace

hr_guard_reading guard_reading() { return reading_of(read_ledger()); }

GuardedProcess& GuardedProcess::one() {
  static auto* made = new GuardedProcess;  // tensors may be refused while the process ends
  return *made;
}

GuardedProcess::GuardedProcess() : process_(getpid()) {
  install_tensor_allocator();
  set_refusal_sentence([](int64_t bytes) { return one().refused(bytes); });
  pthread_atfork(nullptr, nullptr, &go_on_without_limit);
}

bool GuardedProcess::is_forked() const { return process_ != getpid(); }

std::string GuardedProcess::limit(const std::string& wanted, const std::optional<std::filesystem::path>& box) {
  if (is_forked()) {
    throw Error(Exit::bad_input, "headroom.limit",
                "this process was forked from one that has a limit, and cannot have its own; start it with "
                "multiprocessing's \"spawn\"");
  }
  const MemoryLimit limit = decided(wanted);
  const int64_t bytes = limit.bytes.value_or(0);
  if (bytes > 0) expect_to_fit(bytes);
  auto made = box ? std::make_unique<BlackBox>(*box) : nullptr;
  if (made) {
    end();
    const MutexLock lock(mutex_);
    box_ = std::move(made);
  }
  // First: it lifts the ceiling that went with the limit before.
  monitor_.reset();
  set_memory_limit(bytes);
  const MutexLock lock(mutex_);
  if (bytes > 0 || box_) monitor_ = std::make_unique<Monitor>(bytes);
  if (box_) monitor_->fill(*box_);
  return limit.rule;
}

void GuardedProcess::end() {
  if (is_forked()) return;
  monitor_.reset();
  const MutexLock lock(mutex_);
  if (box_) box_->set_phase(Phase::finished);
  box_.reset();
}

std::string GuardedProcess::refused(int64_t bytes) {
  const LedgerReading ledger = read_ledger();
  hr_guard_reading reading = reading_of(ledger);
  reading.asked_bytes = bytes;
  {
    const MutexLock lock(mutex_);
    refusal_ = reading;
    if (box_) box_->push(record_of(ledger));
  }
  return sentence_of(reading);
}

hr_guard_reading GuardedProcess::last_refusal() {
  const MutexLock lock(mutex_);
  return refusal_;
}

}  // namespace headroom
