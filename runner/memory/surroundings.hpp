// What the surroundings of a run leave it, and what others have taken of it since the run began.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "memory/limits.hpp"

namespace headroom {

// Of the cgroup or system where the kernel kills first. The run's own limit, and rlimits, are the allocator's business:
// there an allocation fails and is tried again.
struct Surroundings {
  int64_t held_bytes = 0;             // U
  int64_t left_bytes = 0;             // how far U may grow
  int64_t bound_bytes = 0;            // the bound that leaves least
  std::string bound_name;             // "cgroup /job_7 (v2)"
  int64_t taken_bytes = 0;            // by others, more than they held when the run began
  int64_t margin_bytes = 0;           // below which what is left is little
  double bytes_per_s = 0.0;           // at which others take more; below 0: they give back
  double stalled_percent = 0.0;       // PSI: time in which some process waited for memory, over the last 10 s
  int64_t ceiling_bytes = INT64_MAX;  // how large U may become while others hold what they hold: room less margin
  int64_t soon_bytes = 0;  // what others will take in half a second at this rate; 0 where the margin is enough
};

// Short is what others take from the run: never its own growth, nor what they held before it began. True when they have
// taken more than half the margin, and less than the margin is left, or they would take it within 5 s, or processes
// stall for memory with less than 15 % left.
bool is_short(const Surroundings& surroundings);

// "1.2 GiB left of 23.5 GiB in system, others took 0.8 GiB, 0.3 GiB/s now, processes stalled for 12 % of the time"; the
// last three where there is something to say.
std::string surroundings_text(const Surroundings& surroundings);

// One for a run; remembers how much room there was at the first look.
class SurroundingsReader {
 public:
  // `limit_bytes`: of the run; 0: none. `root` replaces "/" in tests.
  explicit SurroundingsReader(int64_t limit_bytes, std::string root = "/")
      : limit_bytes_(limit_bytes), root_(std::move(root)) {}
  Surroundings look();

 private:
  using Clock = std::chrono::steady_clock;
  struct Sample {
    int64_t room_bytes = 0;
    Clock::time_point time{};
  };
  struct Seen {
    int64_t first_room_bytes = 0, room_bytes = 0;
    double bytes_per_s = 0.0;
    Sample earlier{}, later{};          // the first is 50 ms old at least, once there are two
    int64_t ceiling_bytes = INT64_MAX;  // that it gave when it was read last
    Clock::time_point read_at{};
  };
  int64_t margin_of(const Seen& seen) const;
  int64_t ceiling_of_seen() const;
  static int64_t taken_soon_bytes(Seen& seen, int64_t room_bytes, Clock::time_point time);

  int64_t limit_bytes_;
  std::string root_;
  std::map<std::string, Seen> rooms_;  // by name
  Clock::time_point last_time_{};
  Surroundings last_;
};

}  // namespace headroom
