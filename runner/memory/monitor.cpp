#include "memory/monitor.hpp"

#include <algorithm>
#include <new>

#include "memory/ledger.hpp"
#include "memory/proc_file.hpp"
#include "memory/size_text.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double smoothing = 0.1;  // of the slope, a look: some 2.5 s of memory

// "some avg10=1.23 avg60=..."
double stalled_percent(const std::string& root) {
  const std::string text = read_proc_file(root + "/proc/pressure/memory").value_or("");
  const size_t found = text.find("some avg10=");
  return found == std::string::npos ? 0.0 : std::strtod(text.c_str() + found + 11, nullptr);
}

}  // namespace

bool is_short(const Surroundings& s) {
  const double left = static_cast<double>(s.left_bytes), bound = static_cast<double>(s.bound_bytes);
  if (bound <= 0) return false;
  return left < 0.05 * bound || (s.bytes_per_s > 0 && left < 5 * s.bytes_per_s) ||
         (s.stalled_percent > 10 && left < 0.15 * bound);
}

std::string surroundings_text(const Surroundings& s) {
  std::string text = size_text(s.left_bytes) + " left of " + size_text(s.bound_bytes) + " in " + s.bound_name;
  if (s.bytes_per_s > 0) text += ", going at " + size_text(static_cast<int64_t>(s.bytes_per_s)) + "/s";
  if (s.stalled_percent >= 1) {
    text += ", processes stalled for " + std::to_string(static_cast<int>(s.stalled_percent)) + " % of the time";
  }
  return text;
}

Monitor::Monitor(BlackBox* box, int64_t limit_bytes, std::chrono::milliseconds period, std::string root)
    : box_(box), limit_bytes_(limit_bytes), period_(period), root_(std::move(root)), thread_([this] { watch(); }) {}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

Surroundings Monitor::surroundings() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void Monitor::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    try {
      look();
    } catch (const std::bad_alloc&) {  // the next look may find room for its strings
    }
    lock.lock();
    ending_.wait_for(lock, period_, [this] { return ends_; });
  }
}

void Monitor::look() {
  const Rooms rooms = read_rooms(root_);
  const LedgerReading ledger = read_ledger();
  Surroundings now;
  now.held_bytes = rooms.held_bytes;
  now.stalled_percent = stalled_percent(root_);
  if (const Room* least = rooms.smallest_shared(); least != nullptr) {
    now.left_bytes = least->room_bytes - rooms.held_bytes;
    now.bound_bytes = least->bound_bytes;
    now.bound_name = least->name;
  }
  const auto time = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (looks_ > 0 && last_.bound_name == now.bound_name) {
      const double seconds = std::max(std::chrono::duration<double>(time - last_time_).count(), 1e-3);
      const double slope = static_cast<double>(last_.left_bytes - now.left_bytes) / seconds;
      now.bytes_per_s = (1 - smoothing) * last_.bytes_per_s + smoothing * slope;
    }
    last_ = now;
    last_time_ = time;
  }
  short_ = headroom::is_short(now);
  BlackBoxRecord record;
  record.held_bytes = ledger.held_bytes;
  record.limit_bytes = limit_bytes_;
  record.room_bytes = limit_bytes_ > 0 ? std::min(now.left_bytes, limit_bytes_ - ledger.held_bytes) : now.left_bytes;
  record.live_bytes = ledger.live_bytes;
  record.slack_bytes = ledger.slack_bytes;
  record.other_bytes = ledger.other_bytes;
  if (box_ != nullptr) box_->push(record);
  ++looks_;
}

}  // namespace headroom
