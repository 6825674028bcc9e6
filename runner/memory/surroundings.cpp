#include "memory/surroundings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "memory/file_memory.hpp"
#include "memory/proc_file.hpp"
#include "memory/readable.hpp"

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
    // A limit that was told may be above what the machine has free: its user knows.
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

}  // namespace headroom
