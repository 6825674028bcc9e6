// The room that other processes leave to a run, what they have taken of it since the run began, and the thread that
// watches it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/black_box.hpp"
#include "memory/child_watch.hpp"
#include "memory/limits.hpp"
#include "mutex.hpp"

namespace headroom {

// Figures of the cgroup or machine with the least room, where the kernel kills first. The run's own limit and rlimits
// are not among them: there an allocation fails and is repeated.
struct Surroundings {
  int64_t held_bytes = 0;             // U
  int64_t left_bytes = 0;             // how far U may grow
  int64_t bound_bytes = 0;            // the bound that leaves least
  std::string bound_name;             // "cgroup /job_7 (v2)"
  int64_t taken_bytes = 0;            // by which other processes hold more than when the run began
  int64_t margin_bytes = 0;           // memory is short when less than this is left
  double bytes_per_s = 0.0;           // how fast other processes grow; below 0: they shrink
  double stalled_percent = 0.0;       // PSI: time in which some process waited for memory, over the last 10 s
  int64_t ceiling_bytes = INT64_MAX;  // how large U may become while others hold what they hold: room less margin
  int64_t soon_bytes = 0;  // what others will take within half a second at this rate; 0 where half the margin covers it
};

// True when other processes have taken more than half the margin since the run began, and one of these holds: less than
// the margin is left; they would take the rest within 5 s; processes stall for memory with less than 15 % left. The
// run's own growth never makes memory short.
bool is_short(const Surroundings& surroundings);

// "1.2 GiB left of 23.5 GiB in system, others took 0.8 GiB, 0.3 GiB/s now, processes stalled for 12 % of the time"; the
// last three where there is something to say.
std::string surroundings_text(const Surroundings& surroundings);

// One for a run: it compares with the room at its first look. [one thread]
class SurroundingsReader {
 public:
  // `limit_bytes`: the run's; 0: none. `root` replaces "/" in tests.
  explicit SurroundingsReader(int64_t limit_bytes, std::string root = "/")
      : limit_bytes_(limit_bytes), root_(std::move(root)) {}
  // Reads /proc and the cgroup files. Where they cannot be read, the previous figures.
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

// A thread that looks at the surroundings four times a second, and twenty times while other processes take memory that
// the run counts on. It writes memory figures to the black box, knows whether memory runs short, and sets the budget's
// ceiling (budget.hpp) to the room that is left. It measures child processes where it is asked to. Their allocations
// ask nobody: where they take the run above its limit, and nothing can be given back for them, the largest one is
// ended.
class Monitor {
 public:
  // Starts the thread; the destructor ends it and lifts the ceiling. One a process. `limit_bytes`: the run's; 0: none,
  // and no ceiling is set. `root` replaces "/" in tests. [control]
  explicit Monitor(int64_t limit_bytes, std::chrono::milliseconds period = std::chrono::milliseconds(250),
                   std::string root = "/");
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Pushes a record to the box at every look until stop_filling(). REQUIRES: the box lives until then. [any]
  void fill(BlackBox& box);
  void stop_filling(BlackBox& box);

  // Another limit than before, of a run that has one. [any]
  void set_limit(int64_t limit_bytes) { limit_bytes_ = limit_bytes; }

  // Waits for one more look, after something was written into memory or removed. Gives up after `most`, and at once on
  // the monitor's own thread. [any]
  void look_now(std::chrono::milliseconds most = std::chrono::seconds(10));

  // From here on what child processes hold is a part of U, and under the limit. `tell` gets a sentence for each one
  // that was ended. [any]
  void count_children(std::function<void(const std::string& sentence)> tell = {});

  Surroundings surroundings() const;                                         // at the last look [any]
  int64_t largest_child_bytes() const { return children_.largest_bytes(); }  // at a look so far [any]
  bool is_short() const { return short_.load(std::memory_order_relaxed); }   // [any], a load
  int64_t looks() const { return looks_.load(); }

 private:
  void watch();
  Surroundings look();
  void hold_below(int64_t ceiling_bytes) const;
  void hold_children_below_limit();

  std::atomic<int64_t> limit_bytes_;
  std::chrono::milliseconds period_;
  // Of the thread alone.
  SurroundingsReader reader_;
  ChildWatch children_;
  std::atomic<bool> counts_children_{false};
  std::atomic<bool> short_{false};
  std::atomic<int64_t> looks_{0};
  mutable Mutex mutex_;
  Condition ending_, looked_;
  bool ends_ GUARDED_BY(mutex_) = false;
  // Calls of look_now(), and those among them that it has looked for.
  int64_t asked_ GUARDED_BY(mutex_) = 0, answered_ GUARDED_BY(mutex_) = 0;
  Surroundings last_ GUARDED_BY(mutex_);
  std::vector<BlackBox*> boxes_ GUARDED_BY(mutex_);
  std::function<void(const std::string&)> tell_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace headroom
