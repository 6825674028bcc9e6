// Parts of large reads, which one thread of a loader offers to threads that have nothing to read.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>

#include "arrays/read_hooks.hpp"
#include "mutex.hpp"

namespace headroom {

// All members [any].
class OfferedParts {
 public:
  // `wake_another` is called, without the mutex, whenever there is a part for another helping thread.
  explicit OfferedParts(std::function<void()> wake_another) : wake_another_(std::move(wake_another)) {}

  // As WorkSharer::run(): offers the parts, takes some itself, and waits for those that others have taken.
  void run(size_t parts, const Part& part);

  // Takes parts until none is left. False where there was none.
  bool help();

 private:
  // One call of run(), on its thread's stack. It stays there until no thread is in one of its parts. A part that throws
  // sets begun = parts, so that no further one begins.
  struct Work {
    const size_t parts;
    const Part& part;
    size_t begun = 0, running = 0;
    std::exception_ptr error = nullptr;
    Work* next = nullptr;
  };

  Work* with_parts_left() REQUIRES(mutex_);
  void take_part(Work& work) REQUIRES(mutex_);
  void finish(Work& work);
  void withdraw(Work& work) REQUIRES(mutex_);

  const std::function<void()> wake_another_;
  Mutex mutex_;
  Condition ended_;                           // the last part of a work has
  Work* first_ GUARDED_BY(mutex_) = nullptr;  // a list, and what is in it too
};

}  // namespace headroom
