// Turns to compute: of all the threads that fill batches, only so many decode at a time; one that pauses lends its turn
// to another.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace headroom {

// All members [holding the mutex of the owner].
class Turns {
 public:
  explicit Turns(size_t most) : most_(most) {}

  // Those that come back from a pause go first. `stands_in`: for a thread that only works while others pause.
  bool is_free(bool stands_in) const { return working_ + coming_back_ < most_ && (!stands_in || pausing_ > 0); }
  void take() { ++working_; }
  void give_back() { --working_; }

  // Lends this thread's turn; false where it is kept after all.
  bool lend();
  // Waits for a turn again. What the thread holds meanwhile may be what those that have one wait for, a lock of the
  // plugin's for one: after a second it goes on without, and no turn is lent from then on.
  void take_back(std::unique_lock<std::mutex>& lock);

  // Whether a thread that comes back could go on; then it is to be woken.
  bool is_awaited() const { return coming_back_ > 0 && working_ < most_; }
  void wake() { free_.notify_one(); }  // [not holding it]

 private:
  std::condition_variable free_;
  size_t most_, working_ = 0, pausing_ = 0, coming_back_ = 0;
  bool lends_ = true;
};

}  // namespace headroom
