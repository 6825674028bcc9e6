#include "train/run_memory.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/readable.hpp"
#include "memory/supervised.hpp"
#include "memory/tensor_allocator.hpp"
#include "mutex.hpp"
#include "train/signals.hpp"

namespace headroom {

// Claimed by the first run of a process, and given back after the last.
class ProcessMemory {
 public:
  explicit ProcessMemory(MemoryGrant claimed) : grant(std::move(claimed)), monitor(prepared(grant)) {
    monitor.count_children([](const std::string& sentence) { spdlog::warn("[memory] {}", sentence); });
  }
  ~ProcessMemory() { set_memory_limit(0); }
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  MemoryGrant grant;
  Monitor monitor;

 private:
  // What must stand before the monitor begins; its limit.
  static int64_t prepared(const MemoryGrant& grant) {
    const int64_t limit_bytes = grant.limit.bytes.value_or(0);
    const Rooms rooms = read_rooms();
    // Not of rlimits: beyond those a request fails, and nobody is killed.
    if (const Room* shared = rooms.smallest_shared(); shared != nullptr) set_kill_line(shared->room_bytes);
    set_memory_limit(limit_bytes);
    // Only once our own limit stands in its place.
    lift_start_limit();
    return limit_bytes;
  }
};

namespace {

Mutex claim_mutex;
std::weak_ptr<ProcessMemory> claimed GUARDED_BY(claim_mutex);

// The other run's, where there is one; NULL: cancelled.
std::shared_ptr<ProcessMemory> claim(const MemoryRequest& request, int sharers) {
  // Held through the wait: another run of this process waits for the same memory.
  const MutexLock lock(claim_mutex);
  if (auto there = claimed.lock()) return there;
  std::optional<MemoryGrant> grant = wait_for_memory(request);
  if (!grant) return nullptr;
  if (grant->limit.bytes && request.limit == "auto" && sharers > 1) {
    *grant->limit.bytes = std::max<int64_t>(*grant->limit.bytes / sharers, 1);
    grant->limit.rule += ", of which each of " + std::to_string(sharers) + " processes of the run has an equal part";
  }
  auto made = std::make_shared<ProcessMemory>(std::move(*grant));
  claimed = made;
  return made;
}

// "auto" is divided once it is known.
std::string part_of_limit(const std::string& limit, int sharers) {
  if (sharers == 1 || limit == "auto" || limit == "off") return limit;
  if (limit.ends_with('%')) return std::to_string(std::stod(limit) / sharers) + "%";
  return std::to_string(std::stoll(limit) / sharers);
}

}  // namespace

RunMemory::RunMemory(const Experiment& experiment, int64_t needed_bytes, int64_t wanted_bytes, double waited_seconds,
                     int sharers)
    : process_(claim({.name = experiment.experiment.name,
                      .limit = part_of_limit(experiment.memory.limit, sharers),
                      .needed_bytes = needed_bytes,
                      .wanted_bytes = wanted_bytes,
                      .wait_seconds = std::max(experiment.memory.wait_seconds - waited_seconds, 0.0),
                      .say = [](const std::string& line) { spdlog::info("[memory] {}", line); },
                      .cancelled = [] { return stop_requested() != Exit::ok; }},
                     sharers)) {
  if (process_ != nullptr) limit_bytes_ = limit().bytes.value_or(0);
}

RunMemory::~RunMemory() {
  // The monitor's thread writes to the box.
  if (box_ != nullptr) process_->monitor.stop_filling(*box_);
}

const MemoryLimit& RunMemory::limit() const { return process_->grant.limit; }

bool RunMemory::is_short() const { return process_ != nullptr && process_->monitor.is_short(); }

std::string RunMemory::line() const {
  return "memory: " + (limit_bytes_ > 0 ? "limit " + size_text(limit_bytes_) + ", " : std::string()) +
         process_->grant.limit.rule;
}

void RunMemory::watch(const std::filesystem::path& file, const PressureLadder::Say& say, PressureLadder::Say rung) {
  try {
    box_ = std::make_unique<BlackBox>(file);
    // Its spans lie in the box, which is destroyed after it.
    crash_notes_ = std::make_unique<CrashNotes>(box_->crash_site(), box_->plugin_call());
  } catch (const Error& problem) {
    say(problem.what() + std::string("; the run goes on without one"));
  }
  ladder_ = std::make_unique<PressureLadder>([this, rung = std::move(rung)](const std::string& line) {
    // A line about climbing says why; one about coming down needs no figures.
    rung(is_short() ? line + " (" + surroundings_text(process_->monitor.surroundings()) + ")" : line);
  });
  if (box_ != nullptr) process_->monitor.fill(*box_);
}

void RunMemory::note(Phase phase) const {
  if (box_ != nullptr) box_->set_phase(phase);
}

void RunMemory::note(int64_t step, int64_t epoch, int64_t micro_batch) const {
  if (box_ == nullptr) return;
  box_->set_position(step, epoch);
  box_->set_micro_batch(micro_batch);
}

void RunMemory::set_limit(int64_t bytes) {
  limit_bytes_ = bytes;
  process_->monitor.set_limit(bytes);
  set_memory_limit(bytes);
  settle();
}

void RunMemory::look_again() const {
  if (process_ != nullptr) process_->monitor.look_now();
}

void RunMemory::judge() {
  if (!ladder_) return;
  const bool is_short = this->is_short();
  const int64_t wanted = is_short ? process_->monitor.surroundings().bound_bytes / 10 : 0;
  ladder_->judge(is_short, wanted);
}

int64_t RunMemory::reserved_bytes() const { return process_->grant.reservation.reserved_bytes(); }

void RunMemory::settle(bool epoch_done) {
  epoch_done_ = epoch_done_ || epoch_done;
  const int64_t peak = read_ledger().peak_held_bytes;
  const int64_t most = limit_bytes_ > 0 ? limit_bytes_ : INT64_MAX;
  // Others count what is reserved: before the first validation and checkpoint the peak so far says too little.
  const int64_t least = epoch_done_ ? 0 : process_->grant.reservation.reserved_bytes();
  // A tenth above the peak so far: windows are not all alike.
  process_->grant.reservation.update(std::min(most, std::max(least, peak + peak / 10)));
}

std::string RunMemory::summary() const {
  const std::string peak = "memory: peak " + size_text(read_ledger().peak_held_bytes);
  return limit_bytes_ > 0 ? peak + " of " + size_text(limit_bytes_) : peak;
}

nlohmann::json RunMemory::json() const {
  const LedgerReading ledger = read_ledger();
  nlohmann::json peaks;
  for (size_t i = 0; i < owner_count; ++i) peaks[std::string(owner_name(static_cast<Owner>(i)))] = ledger.peak_bytes[i];
  nlohmann::json json = {{"limit_bytes", limit_bytes_},
                         {"limit_rule", process_->grant.limit.rule},
                         {"measured_peak_bytes", ledger.peak_held_bytes},
                         {"peak_bytes", peaks}};
  if (ladder_) json["pressure"] = {{"tightened", ladder_->tightened()}, {"returned_bytes", ladder_->returned_bytes()}};
  return json;
}

}  // namespace headroom
