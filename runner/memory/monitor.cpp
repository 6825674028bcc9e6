#include "memory/monitor.hpp"

#include <algorithm>
#include <new>

#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"

namespace headroom {

namespace {

// Where what others take may soon reach the run.
bool is_close(const Surroundings& s) { return s.taken_bytes > 0 && s.left_bytes < 8 * s.margin_bytes; }

}  // namespace

// The thread is the last member, so that it begins when all others are made.
Monitor::Monitor(int64_t limit_bytes, std::chrono::milliseconds period, std::string root)
    : limit_bytes_(limit_bytes), period_(period), reader_(limit_bytes, std::move(root)), thread_([this] { watch(); }) {
  if (limit_bytes_ > 0) {
    set_ceiling_look([this] {
      look_now(std::chrono::milliseconds(100));
      return surroundings().soon_bytes;
    });
  }
}

Monitor::~Monitor() {
  // First: it waits for threads that ask for a look, and lets no other begin.
  if (limit_bytes_ > 0) set_ceiling_look({});
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  thread_.join();
  // Behind join(): the thread sets the ceiling too.
  set_memory_ceiling(INT64_MAX);
}

void Monitor::fill(BlackBox& box) {
  const MutexLock lock(mutex_);
  boxes_.push_back(&box);
}

void Monitor::stop_filling(BlackBox& box) {
  const MutexLock lock(mutex_);
  std::erase(boxes_, &box);
}

Surroundings Monitor::surroundings() const {
  const MutexLock lock(mutex_);
  return last_;
}

void Monitor::watch() {
  MutexLock lock(mutex_);
  while (!ends_) {
    // A call that comes during the look waits for the next: this one may have read its figures before.
    const int64_t asking = asked_;
    // look() takes the mutex itself.
    lock.unlock();
    auto pause = period_;
    try {
      if (is_close(look())) pause = period_ / 5;
    } catch (const std::bad_alloc&) {  // the next look may find room for its strings
    }
    lock.lock();
    answered_ = asking;
    looked_.notify_all();
    const auto next = std::chrono::steady_clock::now() + pause;
    while (!ends_ && asked_ == answered_ && ending_.wait_until(mutex_, next)) {
    }
  }
}

void Monitor::look_now(std::chrono::milliseconds most) {
  // It would wait for itself.
  if (std::this_thread::get_id() == thread_.get_id()) return;
  const auto end = std::chrono::steady_clock::now() + most;
  const MutexLock lock(mutex_);
  const int64_t call = ++asked_;
  ending_.notify_all();
  while (!ends_ && answered_ < call && looked_.wait_until(mutex_, end)) {
  }
}

// What is held above it is asked back at once: the kernel does not wait for the end of a window.
void Monitor::hold_below(int64_t ceiling_bytes) const {
  if (limit_bytes_ <= 0) return;
  set_memory_ceiling(ceiling_bytes);
  const int64_t above = held_bytes() - ceiling_bytes;
  if (above > 0) give_back_memory(above);
}

Surroundings Monitor::look() {
  const Surroundings now = reader_.look();
  {
    const MutexLock lock(mutex_);
    last_ = now;
  }
  short_ = headroom::is_short(now);
  hold_below(now.ceiling_bytes);
  const LedgerReading ledger = read_ledger();
  BlackBoxRecord record;
  record.held_bytes = ledger.held_bytes;
  record.limit_bytes = limit_bytes_;
  record.room_bytes = limit_bytes_ > 0 ? std::min(now.left_bytes, limit_bytes_ - ledger.held_bytes) : now.left_bytes;
  record.live_bytes = ledger.live_bytes;
  record.slack_bytes = ledger.slack_bytes;
  record.other_bytes = ledger.other_bytes;
  {
    const MutexLock lock(mutex_);
    for (BlackBox* box : boxes_) box->push(record);
  }
  ++looks_;
  return now;
}

}  // namespace headroom
