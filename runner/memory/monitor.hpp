// A thread that looks at memory four times a second: it fills the black box, and knows whether the surroundings run
// short.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "memory/black_box.hpp"
#include "memory/limits.hpp"

namespace headroom {

// What the surroundings leave: the smallest room among cgroups and system, where the kernel kills, and where it goes.
// The run's own limit, and rlimits, are the allocator's business: there an allocation fails and is tried again.
struct Surroundings {
  int64_t held_bytes = 0;        // U
  int64_t left_bytes = 0;        // how far U may grow
  int64_t bound_bytes = 0;       // the bound that leaves least
  std::string bound_name;        // "cgroup /job_7 (v2)"
  double bytes_per_s = 0.0;      // at which left_bytes shrinks; below 0: it grows
  double stalled_percent = 0.0;  // PSI: time in which some process waited for memory, over the last 10 s
};

// True when less than 5 % of the bound is left, when it would be gone within 5 s, or when processes stall for memory
// with less than 15 % left.
bool is_short(const Surroundings& surroundings);

// "1.2 GiB left of 23.5 GiB in system, going at 0.3 GiB/s, processes stalled for 12 % of the time"; the last two where
// there is something to say.
std::string surroundings_text(const Surroundings& surroundings);

class Monitor {
 public:
  // `box` (nullptr: none) outlives the monitor. `root` replaces "/" in tests.
  Monitor(BlackBox* box, int64_t limit_bytes, std::chrono::milliseconds period = std::chrono::milliseconds(250),
          std::string root = "/");
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  Surroundings surroundings() const;                                        // at the last look [any]
  bool is_short() const { return short_.load(std::memory_order_relaxed); }  // [any], a load
  int64_t looks() const { return looks_.load(); }

 private:
  void watch();
  void look();

  BlackBox* box_;
  int64_t limit_bytes_;
  std::chrono::milliseconds period_;
  std::string root_;
  std::atomic<bool> short_{false};
  std::atomic<int64_t> looks_{0};
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  Surroundings last_;
  std::chrono::steady_clock::time_point last_time_;
  std::thread thread_;
};

}  // namespace headroom
