// The threads of a loader. At most `workers` of them compute at a time: each takes a turn for what it reads. One that
// waits for the disk (arrays/read_hooks.hpp) lends its turn to a stand-in, and one that finds nothing to read takes
// parts of large reads.
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

// What a thread does around its pauses: counts how long the disk took, and where it is a pool's, lends its turn.
class ReaderPauses : public PauseListener {
 public:
  explicit ReaderPauses(ReaderPool* pool = nullptr) : pool_(pool) {}
  // Since it was asked last.
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
    stand_in,  // reads only while others pause
  };
  // Reads one thing on the calling thread, or returns false: there is nothing for it now. Throws nothing.
  using ReadOne = std::function<bool(ReaderPauses&)>;
  // Called once for each thread.
  using MakeReader = std::function<ReadOne(Kind)>;

  ReaderPool(size_t workers, size_t most_stand_ins, MakeReader make_reader);
  ~ReaderPool() { stop(); }
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  // [control] Starts the workers that are not there. Error(does_not_fit).
  void start();
  // [control] Ends all threads: each reads to its end what it has begun. Nothing is read until start().
  void stop();

  // [any] There may be something to read: one thread of the kind looks, now or as soon as it has a turn. Whoever then
  // finds more to read than for itself calls it again. Allocates nothing.
  void wake(Kind kind);

  // [any] Of all workers so far: with nothing to read; and what helpers with parts waited for the disk.
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
  bool wait_for_work(Kind kind, uint64_t& seen);  // takes a turn; false: stopping
  void end_turn();
  bool may_start(Kind kind) const REQUIRES(mutex_) {
    return working_ + coming_back_ < workers_ && (kind == Kind::worker || pausing_ > 0);
  }
  Condition& wanted(Kind kind) { return kind == Kind::worker ? worker_wanted_ : stand_in_wanted_; }
  // Who may go on, and is told so once the mutex is free.
  struct Waiting {
    bool coming_back = false, worker = false, stand_in = false;
  };
  Waiting take_waiting() REQUIRES(mutex_);
  void notify(const Waiting& waiting) EXCLUDES(mutex_);
  bool lend_turn();
  void take_turn_back();
  void add_stand_in();

  const size_t workers_;
  const MakeReader make_reader_;
  OfferedParts parts_;

  // A turn is free while working_ + coming_back_ < workers_: those that come back from a pause go first. calls_[kind]
  // counts wake(): a thread that has looked since the last call has nothing to read. owed_[kind]: a call found no free
  // turn. No member allocates while it holds the mutex: an allocation may ask the loader for its memory, which calls
  // wake().
  mutable Mutex mutex_;
  Condition worker_wanted_, stand_in_wanted_, turn_free_;
  uint64_t calls_[2] GUARDED_BY(mutex_) = {1, 1};
  bool owed_[2] GUARDED_BY(mutex_) = {false, false};
  size_t working_ GUARDED_BY(mutex_) = 0, pausing_ GUARDED_BY(mutex_) = 0, coming_back_ GUARDED_BY(mutex_) = 0;
  bool lends_ GUARDED_BY(mutex_), stopping_ GUARDED_BY(mutex_) = false;
  Times times_ GUARDED_BY(mutex_);
  size_t most_stand_ins_ GUARDED_BY(mutex_), stand_ins_started_ GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> stand_ins_ GUARDED_BY(mutex_);  // has room for all

  std::vector<std::thread> worker_threads_;  // of [control]
};

}  // namespace headroom
