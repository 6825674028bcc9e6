// How a loader takes part in what its threads do inside of a read: it learns when one waits (Pause), so that another
// thread may compute meanwhile, and it lets idle threads take parts of a large read (in_parts()). Code in arrays/ calls
// these; without a loader they do nothing. They are set for each thread, since a plugin's code lies between the loader
// and the read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace headroom {

// A pointer of this thread for the length of a scope: current() is `it` inside of it, NULL outside. Nests.
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

// Called on the pausing thread, before it waits and after. Members do not throw.
class PauseListener {
 public:
  virtual ~PauseListener() = default;
  virtual void begin_pause(PauseFor what) = 0;
  virtual void end_pause(PauseFor what) = 0;
};

// Sets the listener of this thread.
using ListenToPauses = ForThisThread<PauseListener>;

// A scope in which this thread waits: for the disk, or for another thread. Its end may block until the thread may
// compute again, so hold no lock that a computing thread takes.
class Pause {
 public:
  explicit Pause(PauseFor what) : listener_(ListenToPauses::current()), what_(what) {
    if (listener_ != nullptr) listener_->begin_pause(what_);
  }
  ~Pause() {
    if (listener_ != nullptr) listener_->end_pause(what_);
  }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  static bool is_listened_to() { return ListenToPauses::current() != nullptr; }  // whether this thread has a listener

 private:
  PauseListener* listener_;
  PauseFor what_;
};

using Part = std::function<void(size_t part)>;

class WorkSharer {
 public:
  // Runs part(0) to part(parts - 1), in any order, on several threads; returns when all have ended. Once a part throws,
  // no further one begins, and the first exception is thrown here.
  virtual ~WorkSharer() = default;
  virtual void run(size_t parts, const Part& part) = 0;
};

// Sets the sharer of this thread.
using ShareWork = ForThisThread<WorkSharer>;

// As WorkSharer::run() of this thread's sharer; without one, the parts run here in order. A part must not call it.
inline void in_parts(size_t parts, const Part& part) {
  if (WorkSharer* const sharer = ShareWork::current()) return sharer->run(parts, part);
  for (size_t i = 0; i < parts; ++i) part(i);
}

inline bool work_is_shared() { return ShareWork::current() != nullptr; }  // whether this thread has a sharer

}  // namespace headroom
