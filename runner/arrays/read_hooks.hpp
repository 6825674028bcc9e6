// What a thread that reads is given for a while by whoever made it read: a listener to its pauses, and a sharer of
// large reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace headroom {

// From here to the end of the scope current() of this thread is `it`; NULL outside of any. Nests.
template <class T>
class ForThisThread {
 public:
  explicit ForThisThread(T& it) : outer_(std::exchange(current_, &it)) {}
  ~ForThisThread() { current_ = outer_; }
  ForThisThread(const ForThisThread&) = delete;
  ForThisThread& operator=(const ForThisThread&) = delete;

  static T* current() { return current_; }

 private:
  static inline thread_local T* current_ = nullptr;
  T* outer_;
};

enum class PauseFor : uint8_t { disk, another_thread };

// What a thread does around its pauses. Neither member throws.
class PauseListener {
 public:
  virtual ~PauseListener() = default;
  virtual void begin_pause(PauseFor what) = 0;
  virtual void end_pause(PauseFor what) = 0;
};

// Whom the pauses of this thread are told to.
using ListenToPauses = ForThisThread<PauseListener>;

// One pause, begun and ended with the scope. Its end may wait for a turn to compute: hold no lock that a computing
// thread takes.
class Pause {
 public:
  explicit Pause(PauseFor what);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  static bool is_listened_to();  // of this thread

 private:
  PauseListener* listener_;
  PauseFor what_;
};

using Part = std::function<void(size_t part)>;

// Runs part(0) to part(parts - 1), in any order and on several threads, and comes back when all have ended; throws what
// the first of those that failed threw, and the parts that had not begun by then are left out.
class WorkSharer {
 public:
  virtual ~WorkSharer() = default;
  virtual void run(size_t parts, const Part& part) = 0;
};

// Whom in_parts() of this thread goes to.
using ShareWork = ForThisThread<WorkSharer>;

// As WorkSharer::run(); one after the other where nobody shares. Parts ask for no parts of their own.
void in_parts(size_t parts, const Part& part);

bool work_is_shared();  // of this thread

}  // namespace headroom
