// Parts of large reads that one thread of a loader offers to those that have nothing to fill.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include "arrays/shared_work.hpp"

namespace headroom {

class OfferedParts {
 public:
  // `mutex`: of the owner, whose threads wait for parts among other things.
  explicit OfferedParts(std::mutex& mutex) : mutex_(mutex) {}

  bool are_left() const;  // [holding the mutex]

  // As WorkSharer::run(). Takes parts itself; `wake` is called once they are offered. [not holding it]
  template <class Wake>
  void run(size_t parts, const Part& part, Wake&& wake) {
    Work work{.parts = parts, .part = part};
    offer(work);
    wake();
    finish(work);
  }

  // Takes parts until none is left. Comes and leaves holding the mutex.
  void help(std::unique_lock<std::mutex>& lock);

 private:
  // On the stack of the thread that offers, which waits for those that help.
  struct Work {
    size_t parts;
    const Part& part;
    size_t begun = 0, running = 0;
    std::exception_ptr error = nullptr;
    Work* next = nullptr;
  };

  void offer(Work& work);
  void finish(Work& work);
  void take_part(Work& work, std::unique_lock<std::mutex>& lock);
  void withdraw(Work& work);

  std::mutex& mutex_;
  std::condition_variable ended_;
  Work* first_ = nullptr;
};

}  // namespace headroom
