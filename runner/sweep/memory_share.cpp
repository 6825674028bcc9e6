#include "sweep/memory_share.hpp"

#include <algorithm>

#include "memory/limits.hpp"
#include "memory/reservations.hpp"

namespace headroom {

namespace {

Rooms rooms_now() {
  Rooms rooms = read_rooms();
  set_aside(rooms, other_runs());
  return rooms;
}

}  // namespace

int64_t largest_trial_bytes(const std::string& limit) { return decide_limit(limit, rooms_now()).bytes.value_or(0); }

int64_t free_for_trials(int64_t expected_bytes) {
  const Rooms rooms = rooms_now();
  const Room* least = rooms.smallest_shared();
  return least == nullptr ? INT64_MAX : std::max<int64_t>(least->auto_bytes() - expected_bytes, 0);
}

int64_t trial_limit_bytes(int64_t peak_bytes, int64_t largest_bytes) {
  constexpr int64_t furniture_bytes = 32 << 20;
  const int64_t wanted = peak_bytes + peak_bytes / 10 + furniture_bytes;
  return largest_bytes > 0 ? std::min(wanted, largest_bytes) : wanted;
}

}  // namespace headroom
