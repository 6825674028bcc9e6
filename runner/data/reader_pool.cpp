#include "data/reader_pool.hpp"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <string>
#include <system_error>
#include <utility>

#include "error.hpp"
#include "memory/ledger.hpp"

namespace headroom {

namespace {

// Each thread that reads has scratch memory of its own. So beyond a few extra readers, more are started only while all
// scratch memory together is small.
constexpr size_t unconditional_extra_readers = 6;
constexpr int64_t scratch_limit_bytes = 16 << 20;

// A thread that comes back from a pause may hold what the threads with turns wait for, such as a lock of the plugin.
// After this long it goes on without a turn, and the pool lends no more.
constexpr std::chrono::seconds turn_timeout(1);

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Signals of the process are for its main thread; faults are for the thread that makes them.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// What reads decode in, the host's and the plugin's.
int64_t scratch_bytes() {
  const LedgerReading ledger = read_ledger();
  return ledger.live(Owner::reads) + ledger.live(Owner::scratch);
}

size_t index_of(ReaderPool::Kind kind) { return static_cast<size_t>(kind); }

}  // namespace

void ReaderPauses::begin_pause(PauseFor) {
  began_ = std::chrono::steady_clock::now();
  lent_ = pool_ != nullptr && pool_->lend_turn();
}

void ReaderPauses::end_pause(PauseFor what) {
  if (what == PauseFor::disk) disk_seconds_ += seconds_since(began_);
  if (lent_) pool_->take_turn_back();
}

// The WorkSharer of each thread: offers parts of its reads to the others.
class ReaderPool::Sharer : public WorkSharer {
 public:
  explicit Sharer(OfferedParts& parts) : parts_(parts) {}
  void run(size_t parts, const Part& part) override { parts_.run(parts, part); }

 private:
  OfferedParts& parts_;
};

ReaderPool::ReaderPool(size_t workers, size_t most_extra_readers, MakeReader make_reader)
    : workers_(workers),
      make_reader_(std::move(make_reader)),
      parts_([this] {
        wake(Kind::worker);
        wake(Kind::extra);
      }),
      lends_turns_(most_extra_readers > 0),
      most_extra_readers_(most_extra_readers) {
  worker_threads_.reserve(workers);
  waiting_since_.reserve(workers);
  extra_readers_.reserve(most_extra_readers);
}

void ReaderPool::start() {
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
  }
  try {
    while (worker_threads_.size() < workers_) worker_threads_.push_back(make_thread(Kind::worker));
  } catch (const std::system_error& problem) {
    throw Error(Exit::does_not_fit, "data",
                "cannot start reader thread " + std::to_string(worker_threads_.size() + 1) + " of " +
                    std::to_string(workers_) + ": " + problem.what() + "; lower data.num_workers");
  }
}

void ReaderPool::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  worker_wanted_.notify_all();
  extra_wanted_.notify_all();
  for (std::thread& thread : worker_threads_) thread.join();
  worker_threads_.clear();
  // An extra reader may have started another one before it ended.
  MutexLock lock(mutex_);
  while (!extra_readers_.empty()) {
    std::thread last = std::move(extra_readers_.back());
    extra_readers_.pop_back();
    lock.unlock();
    last.join();
    lock.lock();
  }
  extra_readers_started_ = 0;
}

void ReaderPool::wake(Kind kind) {
  {
    const MutexLock lock(mutex_);
    ++wake_calls_[index_of(kind)];
    if (!may_start(kind)) {
      wake_pending_[index_of(kind)] = true;
      return;
    }
  }
  wanted(kind).notify_one();
}

ReaderPool::Times ReaderPool::times() const {
  const MutexLock lock(mutex_);
  Times times = times_;
  for (const Clock::time_point began : waiting_since_) times.idle += seconds_since(began);
  return times;
}

// Makes what the thread needs before it starts: a failure to allocate is thrown to the caller.
std::thread ReaderPool::make_thread(Kind kind) {
  return std::thread([this, kind, read_one = make_reader_(kind)] { run(kind, read_one); });
}

void ReaderPool::run(Kind kind, const ReadOne& read_one) {
  block_signals();
  ReaderPauses pauses(this);
  Sharer sharer(parts_);
  const ListenToPauses listening(pauses);
  const ShareWork sharing(sharer);
  // No count of calls is 0, so the thread looks for work once before it sleeps.
  uint64_t seen = 0;
  while (wait_for_work(kind, seen)) {
    if (parts_.help()) {
      const double disk_seconds = pauses.take_disk_seconds();
      const MutexLock lock(mutex_);
      times_.disk += disk_seconds;
      seen = 0;
    } else if (read_one(pauses)) {
      seen = 0;
    }
    end_turn();
  }
}

bool ReaderPool::wait_for_work(Kind kind, uint64_t& seen) {
  const auto began = Clock::now();
  const MutexLock lock(mutex_);
  const uint64_t& calls = wake_calls_[index_of(kind)];
  if (kind == Kind::worker) waiting_since_.push_back(began);
  while (!stopping_ && (seen == calls || !may_start(kind))) {
    if (seen != calls) wake_pending_[index_of(kind)] = true;
    wanted(kind).wait(mutex_);
  }
  if (kind == Kind::worker) {
    waiting_since_.erase(std::ranges::find(waiting_since_, began));
    times_.idle += seconds_since(began);
  }
  if (stopping_) return false;
  seen = calls;
  ++working_;
  return true;
}

void ReaderPool::end_turn() {
  Waiting waiting;
  {
    const MutexLock lock(mutex_);
    --working_;
    waiting = take_waiting();
  }
  notify(waiting);
}

// Threads that come back from a pause go first.
ReaderPool::Waiting ReaderPool::take_waiting() {
  const auto take_pending = [this](Kind kind) {
    mutex_.is_held();
    return may_start(kind) && std::exchange(wake_pending_[index_of(kind)], false);
  };
  return {coming_back_ > 0 && working_ < workers_, take_pending(Kind::worker), take_pending(Kind::extra)};
}

void ReaderPool::notify(const Waiting& waiting) {
  if (waiting.coming_back) turn_free_.notify_one();
  if (waiting.worker) worker_wanted_.notify_one();
  if (waiting.extra) extra_wanted_.notify_one();
}

// Called when a pause begins. False where the thread keeps its turn.
bool ReaderPool::lend_turn() {
  {
    const MutexLock lock(mutex_);
    if (!lends_turns_) return false;
    --working_;
    ++pausing_;
  }
  add_extra_reader();
  Waiting waiting;
  {
    const MutexLock lock(mutex_);
    waiting = take_waiting();
  }
  notify(waiting);
  return true;
}

// Called when a pause ends. Counting itself in coming_back_ keeps new readers from taking the next turn.
void ReaderPool::take_turn_back() {
  const auto end = Clock::now() + turn_timeout;
  const MutexLock lock(mutex_);
  --pausing_;
  ++coming_back_;
  bool in_time = true;
  while (working_ >= workers_ && in_time) in_time = turn_free_.wait_until(mutex_, end);
  if (working_ >= workers_) lends_turns_ = false;
  --coming_back_;
  ++working_;
}

// An extra reader is started by a pause, and stays until stop(). The count goes up first, so that two pauses do not
// start one too many while the mutex is free.
void ReaderPool::add_extra_reader() {
  {
    const MutexLock lock(mutex_);
    if (stopping_ || extra_readers_started_ >= most_extra_readers_) return;
    if (extra_readers_started_ >= unconditional_extra_readers && scratch_bytes() > scratch_limit_bytes) return;
    ++extra_readers_started_;
  }
  std::thread thread;
  try {
    thread = make_thread(Kind::extra);
  } catch (const std::exception&) {  // no room for another; the pool goes on with those it has
  }
  const MutexLock lock(mutex_);
  if (thread.joinable()) {
    extra_readers_.push_back(std::move(thread));
  } else {
    most_extra_readers_ = --extra_readers_started_;
  }
}

}  // namespace headroom
