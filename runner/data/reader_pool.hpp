// The threads of a loader. At most `workers` of them compute at a time: a thread takes a turn before it reads. A thread
// that waits for the disk (Pause, arrays/read_hooks.hpp) lends its turn to an extra reader, so that the disk has more
// requests than there are workers. A thread without a batch to read helps with parts of large reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "arrays/read_hooks.hpp"
#include "data/offered_parts.hpp"
#include "mutex.hpp"

namespace headroom {

class ReaderPool;

// A thread's PauseListener: sums the time that it waited for the disk and, for a thread of a pool, lends its turn.
class ReaderPauses : public PauseListener {
 public:
  explicit ReaderPauses(ReaderPool* pool = nullptr) : pool_(pool) {}
  // Seconds since the last call.
  double take_disk_seconds() { return std::exchange(disk_seconds_, 0); }

 private:
  void begin_pause(PauseFor what) override;
  void end_pause(PauseFor what) override;

  ReaderPool* const pool_;
  std::chrono::steady_clock::time_point began_;
  double disk_seconds_ = 0;
  bool lent_ = false;
};

class ReaderPool {
 public:
  enum class Kind : uint8_t {
    worker,
    extra,  // reads only while others pause
  };
  // Reads one batch on the calling thread. Returns false where there is none to read now. Does not throw.
  using ReadOne = std::function<bool(ReaderPauses&)>;
  // Makes the ReadOne of one thread, before the thread starts.
  using MakeReader = std::function<ReadOne(Kind)>;

  ReaderPool(size_t workers, size_t most_extra_readers, MakeReader make_reader);
  ~ReaderPool() { stop(); }
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  // Starts the workers that do not run. Error(does_not_fit) where the system has no more threads. [control]
  void start();
  // Ends all threads, each after the batch it is reading. Nothing is read until start(). [control]
  void stop();

  // Says that there may be something to read. One thread of the kind calls its ReadOne, as soon as it has a turn; if
  // that thread finds more to read, it calls wake() again. Allocates nothing. [any]
  void wake(Kind kind);

  // Seconds so far: workers without anything to read, and helpers in parts of large reads that waited for the disk.
  // [any]
  struct Times {
    double idle = 0, disk = 0;
  };
  Times times() const;

 private:
  friend class ReaderPauses;
  class Sharer;
  using Clock = std::chrono::steady_clock;

  std::thread make_thread(Kind kind);
  void run(Kind kind, const ReadOne& read_one);
  // Waits for a wake() since `seen`, and for a turn, which it takes. False: the pool stops.
  bool wait_for_work(Kind kind, uint64_t& seen);
  void end_turn();
  bool may_start(Kind kind) const REQUIRES(mutex_) {
    return working_ + coming_back_ < workers_ && (kind == Kind::worker || pausing_ > 0);
  }
  Condition& wanted(Kind kind) { return kind == Kind::worker ? worker_wanted_ : extra_wanted_; }
  // The threads that may go on; they are notified once the mutex is free.
  struct Waiting {
    bool coming_back = false, worker = false, extra = false;
  };
  Waiting take_waiting() REQUIRES(mutex_);
  void notify(const Waiting& waiting) EXCLUDES(mutex_);
  bool lend_turn();
  void take_turn_back();
  void add_extra_reader();

  const size_t workers_;
  const MakeReader make_reader_;
  OfferedParts parts_;

  // - A turn is free while working_ + coming_back_ < workers_: threads that come back from a pause go first.
  // - wake_calls_[kind] counts calls of wake(). A thread whose ReadOne returned false sleeps until the next call.
  // - wake_pending_[kind]: a call of wake() found no free turn. Whoever frees a turn notifies a thread of that kind.
  // - No member allocates while it holds the mutex: an allocation may ask the loader for its memory, which calls
  // wake().
  mutable Mutex mutex_;
  Condition worker_wanted_, extra_wanted_, turn_free_;
  uint64_t wake_calls_[2] GUARDED_BY(mutex_) = {1, 1};
  bool wake_pending_[2] GUARDED_BY(mutex_) = {false, false};
  size_t working_ GUARDED_BY(mutex_) = 0, pausing_ GUARDED_BY(mutex_) = 0, coming_back_ GUARDED_BY(mutex_) = 0;
  bool lends_turns_ GUARDED_BY(mutex_), stopping_ GUARDED_BY(mutex_) = false;
  Times times_ GUARDED_BY(mutex_);                                   // without the waits that go on
  std::vector<Clock::time_point> waiting_since_ GUARDED_BY(mutex_);  // of workers; its capacity is one for each
  size_t most_extra_readers_ GUARDED_BY(mutex_), extra_readers_started_ GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> extra_readers_ GUARDED_BY(mutex_);  // its capacity is the most there may be

  std::vector<std::thread> worker_threads_;  // of [control]
};

}  // namespace headroom
