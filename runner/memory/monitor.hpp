// A thread that reads memory figures four times a second, and twenty times while other processes take memory that the
// run counts on. It writes them to the black box, knows whether memory runs short, and sets the budget's ceiling
// (budget.hpp) to the room that is left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "memory/black_box.hpp"
#include "memory/surroundings.hpp"
#include "mutex.hpp"

namespace headroom {

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

  // Waits for one more look, after something was written into memory or removed. Gives up after `most`, and at once on
  // the monitor's own thread. [any]
  void look_now(std::chrono::milliseconds most = std::chrono::seconds(10));

  Surroundings surroundings() const;                                        // at the last look [any]
  bool is_short() const { return short_.load(std::memory_order_relaxed); }  // [any], a load
  int64_t looks() const { return looks_.load(); }

 private:
  void watch();
  Surroundings look();
  void hold_below(int64_t ceiling_bytes) const;

  int64_t limit_bytes_;
  std::chrono::milliseconds period_;
  SurroundingsReader reader_;  // of the thread alone
  std::atomic<bool> short_{false};
  std::atomic<int64_t> looks_{0};
  mutable Mutex mutex_;
  Condition ending_, looked_;
  bool ends_ GUARDED_BY(mutex_) = false;
  // Calls of look_now(), and those among them that it has looked for.
  int64_t asked_ GUARDED_BY(mutex_) = 0, answered_ GUARDED_BY(mutex_) = 0;
  Surroundings last_ GUARDED_BY(mutex_);
  std::vector<BlackBox*> boxes_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace headroom
