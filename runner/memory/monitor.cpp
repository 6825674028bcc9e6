#include "memory/monitor.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "memory/budget.hpp"
#include "memory/file_memory.hpp"
#include "memory/ledger.hpp"
#include "memory/proc_file.hpp"
#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "memory/relief.hpp"

namespace headroom {

namespace {

constexpr double memory_seconds = 2.5;  // of the slope
constexpr std::chrono::milliseconds least_apart(50), foresight(500);

// "some avg10=1.23 avg60=..."
double stalled_percent(const std::string& root) {
  const std::string text = read_proc_file(root + "/proc/pressure/memory").value_or("");
  const size_t found = text.find("some avg10=");
  return found == std::string::npos ? 0.0 : std::strtod(text.c_str() + found + 11, nullptr);
}

}  // namespace

bool is_short(const Surroundings& s) {
  if (s.bound_bytes <= 0 || s.taken_bytes <= s.margin_bytes / 2) return false;
  const double left = static_cast<double>(s.left_bytes), bound = static_cast<double>(s.bound_bytes);
  return s.left_bytes < s.margin_bytes || (s.bytes_per_s > 0 && left < 5 * s.bytes_per_s) ||
         (s.stalled_percent > 10 && left < 0.15 * bound);
}

std::string surroundings_text(const Surroundings& s) {
  std::string text = size_text(s.left_bytes) + " left of " + size_text(s.bound_bytes) + " in " + s.bound_name;
  if (s.taken_bytes > 0) text += ", others took " + size_text(s.taken_bytes);
  if (s.bytes_per_s >= 1) text += ", " + size_text(static_cast<int64_t>(s.bytes_per_s)) + "/s now";
  if (s.stalled_percent >= 1) {
    text += ", processes stalled for " + std::to_string(static_cast<int>(s.stalled_percent)) + " % of the time";
  }
  return text;
}

// Half of what the run's limit left free of its room at the start, but neither next to nothing nor more than the kernel
// needs to do its work.
int64_t SurroundingsReader::margin_of(const Seen& seen) const {
  const int64_t room = seen.first_room_bytes;
  const int64_t wanted = limit_bytes_ > 0 ? std::min(limit_bytes_, room) : room - room / 10;
  return std::clamp((room - wanted) / 2, room / 64, room / 20);
}

// Within `foresight` at the rate of the last 50 ms or more.
int64_t SurroundingsReader::taken_soon_bytes(Seen& seen, int64_t room_bytes, Clock::time_point time) {
  if (time - seen.later.time >= least_apart) seen.earlier = std::exchange(seen.later, {room_bytes, time});
  if (seen.earlier.time == Clock::time_point()) return 0;
  const double seconds = std::chrono::duration<double>(time - seen.earlier.time).count();
  const double taken = static_cast<double>(seen.earlier.room_bytes - room_bytes);
  return static_cast<int64_t>(std::max(taken / seconds * std::chrono::duration<double>(foresight).count(), 0.0));
}

// A bound that cannot be read, for want of a descriptor or of memory, holds for another 10 s. Then it counts as gone.
int64_t SurroundingsReader::ceiling_of_seen() const {
  int64_t ceiling = INT64_MAX;
  for (const auto& [name, seen] : rooms_) {
    if (last_time_ - seen.read_at < std::chrono::seconds(10)) ceiling = std::min(ceiling, seen.ceiling_bytes);
  }
  return ceiling;
}

Surroundings SurroundingsReader::look() {
  const Rooms rooms = read_rooms(root_);
  if (rooms.held_bytes == 0) return last_;  // it could not be read: all that the run holds would count as others'
  const int64_t own_files = bytes_written_in_memory();  // taken of the room, but by the run itself
  const auto time = Clock::now();
  const double seconds = std::max(std::chrono::duration<double>(time - last_time_).count(), 1e-3);
  last_time_ = time;
  Surroundings now;
  now.held_bytes = rooms.held_bytes;
  now.stalled_percent = stalled_percent(root_);
  now.left_bytes = INT64_MAX;
  for (const Room& room : rooms.rooms) {
    if (room.scope.empty()) continue;
    const int64_t left_by_others = room.room_bytes + own_files;
    const auto [entry, is_new] =
        rooms_.try_emplace(room.name, Seen{.first_room_bytes = left_by_others, .room_bytes = left_by_others});
    Seen& seen = entry->second;
    const double slope = static_cast<double>(seen.room_bytes - left_by_others) / seconds;
    // An exponential average over memory_seconds, however far apart the looks are.
    if (!is_new) seen.bytes_per_s += (slope - seen.bytes_per_s) * (1 - std::exp(-seconds / memory_seconds));
    seen.room_bytes = left_by_others;
    seen.read_at = time;
    const int64_t margin = margin_of(seen), left = room.room_bytes - rooms.held_bytes;
    // An explicit limit may be above what the machine has free: the user chose it.
    const bool counts = room.kills() || limit_bytes_ <= seen.first_room_bytes - margin;
    const int64_t soon = taken_soon_bytes(seen, left_by_others, time);
    if (counts && soon > margin / 2) now.soon_bytes = std::max(now.soon_bytes, soon);
    seen.ceiling_bytes = counts ? room.room_bytes - margin : INT64_MAX;
    if (left >= now.left_bytes) continue;
    now.left_bytes = left;
    now.bound_bytes = room.bound_bytes;
    now.bound_name = room.name;
    now.taken_bytes = std::max<int64_t>(seen.first_room_bytes - left_by_others, 0);
    now.margin_bytes = margin;
    now.bytes_per_s = seen.bytes_per_s;
  }
  now.ceiling_bytes = ceiling_of_seen();
  last_ = now;
  return now;
}

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

// Beyond what the heap may take of its own accord (try_to_grow_heap), so that it is the children's doing.
void Monitor::hold_children_below_limit() {
  const int64_t limit = limit_bytes_;
  if (limit <= 0 || children_bytes() == 0) return;
  const int64_t most = limit + 2 * cushion_bytes(limit);
  if (held_bytes() <= most) return;
  give_back_memory(held_bytes() - most);
  const int64_t held = held_bytes();
  // Above it by what this process alone holds, it would lose its children for nothing.
  if (held <= most || own_held_bytes() > most) return;
  const auto ended = children_.end_largest();
  if (!ended) return;
  const std::string sentence =
      "the run and its child processes held " + size_text(held) + ", above the limit of " + size_text(limit) +
      ": process " + std::to_string(ended->pid) + " (" + ended->name + "), which held " + size_text(ended->bytes) +
      " of it, was ended; lower data.num_workers or what a worker keeps, or raise memory.limit";
  std::function<void(const std::string&)> tell;
  {
    const MutexLock lock(mutex_);
    tell = tell_;
  }
  if (tell) tell(sentence);
}

void Monitor::count_children(std::function<void(const std::string&)> tell) {
  {
    const MutexLock lock(mutex_);
    tell_ = std::move(tell);
  }
  counts_children_ = true;
}

Surroundings Monitor::look() {
  if (counts_children_) {
    children_.look();
    hold_children_below_limit();
  }
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
  const int64_t limit = limit_bytes_;
  record.limit_bytes = limit;
  record.room_bytes = limit > 0 ? std::min(now.left_bytes, limit - ledger.held_bytes) : now.left_bytes;
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
