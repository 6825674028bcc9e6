#include "data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <compare>
#include <csignal>
#include <deque>
#include <limits>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <system_error>
#include <thread>
#include <utility>

#include "arrays/pause.hpp"
#include "data/batch_reader.hpp"
#include "data/offered_parts.hpp"
#include "data/turns.hpp"
#include "memory/ledger.hpp"
#include "memory/relief.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

// Each thread that reads has scratch memory of its own: large chunks are not read by many at a time.
constexpr size_t few_stand_ins = 6;
constexpr int64_t much_scratch_bytes = 16 << 20;

constexpr uint64_t most_warnings = 10;  // sentences about skipped samples; the count goes on

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

uint64_t epoch_length(const Split& split, const LoaderOptions& options) {
  const uint64_t all = split.length();
  return options.samples_per_epoch < 0 ? all : std::min(all, static_cast<uint64_t>(options.samples_per_epoch));
}

int64_t batch_bytes(const BatchPlan& plan) {
  std::vector<int64_t> field_bytes;
  for (const Field& field : plan.source->fields()) field_bytes.push_back(field.bytes());
  return slot_bytes(field_bytes, plan.options.batch_size);
}

int64_t batches_per_epoch(const BatchPlan& plan) {
  const auto samples = static_cast<int64_t>(epoch_length(plan.split, plan.options));
  const int64_t size = std::max<int64_t>(1, plan.options.batch_size);
  return (samples + size - 1) / size;
}

// Those beyond batches_ahead() are made only once reads wait for the disk.
std::shared_ptr<SlotPool> make_slots(const BatchPlan& plan) {
  const LoaderOptions& options = plan.options;
  const int64_t bytes = batch_bytes(plan);
  const size_t most = slot_count(options, bytes, batches_in_all(options, batches_per_epoch(plan)));
  const size_t of_the_disk = batches_ahead_of_disk(options, bytes) - batches_ahead(options, bytes);
  const size_t usual = std::min(most, slot_count(options, bytes) - of_the_disk);
  return std::make_shared<SlotPool>(plan.source->fields(), options.batch_size, most, usual);
}

// The process's signals are for its main thread.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);  // are the thread's own
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

struct Position {
  uint64_t epoch = 0, first = 0;
  auto operator<=>(const Position&) const = default;
};

// One batch on its way. Its reader fills `batch`, `error` and `skipped`, then sets `done` under the mutex.
struct Job {
  Position position;
  Batch batch;
  std::exception_ptr error;
  std::vector<SkippedSample> skipped;
  bool done = false;
};

}  // namespace

// Readers plan jobs in order under the mutex and fill them outside of it; next() takes them from the front of the
// queue. Jobs and slots are never destroyed under the mutex: a slot takes it to return.
struct Loader::State {
  // Of one thread: lends its turn while it pauses, and counts how long the disk took; offers parts of what it reads.
  class Pauses : public PauseListener, public WorkSharer {
   public:
    explicit Pauses(State& state) : state_(state) {}
    void run(size_t parts, const Part& part) override {
      state_.offered.run(parts, part, [this] { state_.let_go_on(std::unique_lock(state_.pool->mutex)); });
    }
    double take_disk_seconds() { return std::exchange(disk_seconds_, 0); }

   private:
    void begin_pause(PauseFor) override {
      began_ = Clock::now();
      lent_ = state_.may_lend && state_.lend_turn();
    }
    void end_pause(PauseFor what) override {
      if (what == PauseFor::disk) disk_seconds_ += seconds_since(began_);
      if (!lent_) return;
      std::unique_lock lock(state_.pool->mutex);
      state_.turns.take_back(lock);
    }

    State& state_;
    Clock::time_point began_;
    double disk_seconds_ = 0;
    bool lent_ = false;
  };

  State(std::shared_ptr<const Source> source, Split split, Normalizer normalizer, LoaderOptions options)
      : plan{std::move(source), std::move(split), std::move(normalizer), options, 0, nullptr},
        inline_reader(plan),
        read_ahead(batches_ahead(options, batch_bytes(plan))),
        read_ahead_of_disk(batches_ahead_of_disk(options, batch_bytes(plan))),
        pool(make_slots(plan)),
        offered(pool->mutex),
        turns(static_cast<size_t>(std::max(0, options.num_workers))),
        most_stand_ins(stand_ins(options, read_ahead_of_disk)),
        may_lend(most_stand_ins > 0) {
    if (options.batch_size < 1)
      throw Error(Exit::bad_input, "data",
                  "train.batch_size is " + std::to_string(options.batch_size) + "; at least 1 is needed");
    plan.samples_per_epoch = epoch_length(plan.split, options);
    if (options.keep_samples) {
      plan.kept = std::make_shared<KeptSamples>(SampleCache::shared(), plan.source->fields(), *options.keep_samples);
    }
    plan.options.num_workers = std::max(0, options.num_workers);
  }
  ~State() { stop_threads(); }

  bool ended(const Position& at) const { return at.first >= plan.samples_per_epoch; }

  // [holding mutex] Where reading goes on; in the next epoch only when that is wanted now.
  bool work_left() const {
    if (!ended(planned)) return true;
    if (!continuous || plan.samples_per_epoch == 0) return false;
    const bool is_last = plan.options.epochs >= 0 && static_cast<int64_t>(planned.epoch) + 1 >= plan.options.epochs;
    const bool has_begun = planned.epoch < delivered.epoch;
    return is_last ? has_begun && consumer_waits : has_begun || plan.options.persistent_workers;
  }

  // [holding mutex]
  bool may_work(bool stands_in) const {
    return turns.is_free(stands_in) && (offered.are_left() || may_plan(stands_in));
  }

  // [holding mutex]
  bool may_plan(bool stands_in) const {
    if (failure != nullptr || !work_left()) return false;
    if (queue.empty() && consumer_waits) return true;
    return tightened == 0 && queue.size() < (stands_in ? read_ahead_of_disk : read_ahead) && pool->has_room() &&
           !giving_back;
  }

  // Comes holding the mutex, after a change, and leaves without it. Wakes one thread of each kind that may go on; one
  // that goes on calls this too, so that another follows where there is work for it.
  void let_go_on(std::unique_lock<std::mutex> lock) {
    const bool worker = may_work(false), other = may_work(true);
    const bool turn = turns.is_awaited(), batch = consumer_waits && front_is_ready();
    lock.unlock();
    if (worker) pool->slot_free.notify_one();
    if (other) stand_in_wanted.notify_one();
    if (turn) turns.wake();
    if (batch) batch_ready.notify_one();
  }

  // [holding mutex]
  bool front_is_ready() const { return failure != nullptr || (!queue.empty() && queue.front()->done); }

  // [holding mutex] Nothing has changed where it throws.
  std::shared_ptr<Job> plan_next(bool queued) {
    auto job = std::make_shared<Job>();
    job->position = ended(planned) ? Position{planned.epoch + 1, 0} : planned;
    if (queued) queue.push_back(job);
    planned = {job->position.epoch, job->position.first + static_cast<uint64_t>(plan.options.batch_size)};
    return job;
  }

  // Comes holding the mutex, and leaves without it.
  void fill(Job& job, std::unique_lock<std::mutex> lock, BatchReader& reader, Pauses& pauses) {
    try {
      auto reserved = pool->reserve();
      let_go_on(std::move(lock));
      auto slot = pool->lend(std::move(reserved));
      const ListenToPauses listening(pauses);
      const ShareWork sharing(pauses);
      job.batch = reader.read(job.position.epoch, job.position.first, std::move(slot), job.skipped);
    } catch (...) {
      job.error = std::current_exception();
    }
  }

  // [holding mutex]
  void count_times(const BatchReader::Times& took, double disk) {
    times.disk += disk;
    times.decode += std::max(0.0, took.source - disk);
    times.normalize += took.normalize;
    ++times.batches;
  }

  // [holding mutex] NULL where there is no memory even for the job; next() tells.
  std::shared_ptr<Job> try_to_plan() {
    try {
      return plan_next(/*queued=*/true);
    } catch (const std::bad_alloc&) {
      failure = std::current_exception();
      return nullptr;
    }
  }

  // `stands_in`: only while others pause.
  void work(bool stands_in) {
    block_signals();
    BatchReader reader(plan);
    Pauses pauses(*this);
    std::unique_lock lock(pool->mutex);
    while (true) {
      const auto began = Clock::now();
      (stands_in ? stand_in_wanted : pool->slot_free).wait(lock, [&] { return stopping || may_work(stands_in); });
      if (stopping) return;
      if (!stands_in) times.idle += seconds_since(began);
      if (offered.are_left()) {
        help(lock, pauses);
        continue;
      }
      if (tightened == 0 && !giving_back) pool->grow(lock);
      if (stopping || !turns.is_free(stands_in) || !may_plan(stands_in)) continue;
      std::shared_ptr<Job> job = try_to_plan();
      if (job != nullptr) {
        turns.take();
        fill(*job, std::move(lock), reader, pauses);
        lock = std::unique_lock(pool->mutex);
        turns.give_back();
        count_times(reader.take_times(), pauses.take_disk_seconds());
        job->done = true;
        job_done.notify_all();
      }
      let_go_on(std::move(lock));
      job.reset();
      lock = std::unique_lock(pool->mutex);
    }
  }

  // Comes and leaves holding the mutex.
  void help(std::unique_lock<std::mutex>& lock, Pauses& pauses) {
    turns.take();
    let_go_on(std::move(lock));
    lock = std::unique_lock(pool->mutex);
    {
      const ListenToPauses listening(pauses);
      offered.help(lock);
    }
    turns.give_back();
    times.disk += pauses.take_disk_seconds();
    let_go_on(std::move(lock));
    lock = std::unique_lock(pool->mutex);
  }

  void start_threads() {
    {
      const std::lock_guard lock(pool->mutex);
      stopping = false;
    }
    try {
      while (threads.size() < static_cast<size_t>(plan.options.num_workers))
        threads.emplace_back([this] { work(false); });
    } catch (const std::system_error& problem) {
      throw Error(Exit::does_not_fit, "data",
                  "cannot start reader thread " + std::to_string(threads.size() + 1) + " of " +
                      std::to_string(plan.options.num_workers) + ": " + problem.what() + "; lower data.num_workers");
    }
  }

  void stop_threads() {
    {
      const std::lock_guard lock(pool->mutex);
      stopping = true;
    }
    pool->slot_free.notify_all();
    stand_in_wanted.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    for (std::thread& thread : stand_in_threads) thread.join();  // no thread is left that adds one
    stand_in_threads.clear();
  }

  // Called by a thread that pauses. False: its turn stays with it.
  bool lend_turn() {
    std::unique_lock lock(pool->mutex);
    if (!turns.lend()) return false;
    add_stand_in();
    let_go_on(std::move(lock));
    return true;
  }

  // [holding mutex]
  void add_stand_in() {
    if (stopping || stand_in_threads.size() >= most_stand_ins) return;
    if (stand_in_threads.size() >= few_stand_ins && read_ledger().live(Owner::scratch) > much_scratch_bytes) return;
    try {
      stand_in_threads.emplace_back([this] { work(true); });
    } catch (const std::exception&) {  // no room for another: those that are there go on
      most_stand_ins = stand_in_threads.size();
    }
  }

  std::shared_ptr<Job> read_here() {
    std::unique_lock lock(pool->mutex);
    auto job = plan_next(/*queued=*/false);
    Pauses pauses(*this);
    fill(*job, std::move(lock), inline_reader, pauses);
    lock = std::unique_lock(pool->mutex);
    count_times(inline_reader.take_times(), pauses.take_disk_seconds());
    return job;
  }

  std::shared_ptr<Job> take_from_threads() {
    start_threads();
    std::unique_lock lock(pool->mutex);
    if (!front_is_ready()) {
      consumer_waits = true;
      let_go_on(std::move(lock));
      lock = std::unique_lock(pool->mutex);
      batch_ready.wait(lock, [&] { return front_is_ready(); });
      consumer_waits = false;
    }
    if (failure != nullptr) std::rethrow_exception(std::exchange(failure, nullptr));
    auto job = std::move(queue.front());
    queue.pop_front();
    let_go_on(std::move(lock));
    return job;
  }

  // [holding mutex] Batches read ahead, but for the one that is waited for, are read again later. The last one, where
  // it has been read; nullptr: there is none.
  std::shared_ptr<Job> drop_last() {
    if (queue.size() <= (consumer_waits ? 1u : 0u) || !queue.back()->done) return nullptr;
    planned = queue.back()->position;
    std::shared_ptr<Job> dropped = std::move(queue.back());
    queue.pop_back();
    return dropped;
  }

  // Comes holding the mutex, and leaves without it. Free slots first, then those of batches read ahead; the last slot
  // too while nobody reads. Allocates nothing.
  int64_t drop_read_ahead(std::unique_lock<std::mutex> lock, int64_t wanted_bytes) {
    giving_back = true;
    const size_t kept = at_rest ? 0 : 1;
    int64_t returned = pool->drop_free(kept, wanted_bytes);
    while (returned < wanted_bytes) {
      std::shared_ptr<Job> dropped = drop_last();
      if (dropped == nullptr) break;
      lock.unlock();
      dropped.reset();  // takes the mutex to return its slot
      lock.lock();
      returned += pool->drop_free(kept, wanted_bytes - returned);
    }
    giving_back = false;
    let_go_on(std::move(lock));
    return returned;
  }

  // In the middle of an allocation this thread may have the mutex already.
  int64_t try_to_drop_read_ahead(int64_t wanted_bytes) {
    std::unique_lock lock(pool->mutex, std::try_to_lock);
    return lock.owns_lock() ? drop_read_ahead(std::move(lock), wanted_bytes) : 0;
  }

  // From here on nothing is read ahead, and what has been is dropped: waits for what is being read.
  void read_nothing_ahead() {
    std::unique_lock lock(pool->mutex);
    ++tightened;
    job_done.wait(
        lock, [this] { return std::ranges::all_of(queue, [](const std::shared_ptr<Job>& job) { return job->done; }); });
    drop_read_ahead(std::move(lock), std::numeric_limits<int64_t>::max());
  }

  void read_ahead_again() {
    std::unique_lock lock(pool->mutex);
    --tightened;
    pool->may_grow_again();
    let_go_on(std::move(lock));
  }

  // The epoch is over: its threads too, unless they stay.
  void end_epoch() {
    counted_to = {};
    if (!plan.options.persistent_workers) stop_threads();
    std::unique_lock lock(pool->mutex);
    at_rest = true;
    if (!continuous) return;
    delivered = {delivered.epoch + 1, 0};
    let_go_on(std::move(lock));
  }

  // A sample that is read again after seek() is counted once.
  void count_skipped(const Job& job) {
    for (const SkippedSample& sample : job.skipped) {
      if (Position{job.position.epoch, sample.position} < counted_to) continue;
      counted_to = {job.position.epoch, sample.position + 1};
      if (skipped++ < most_warnings) spdlog::warn("skipped: {}", sample.sentence);
    }
  }

  BatchPlan plan;
  BatchReader inline_reader;  // of num_workers = 0
  const size_t read_ahead, read_ahead_of_disk;
  std::shared_ptr<SlotPool> pool;

  // Guarded by pool->mutex; next() and seek() alone write `delivered` and `continuous`.
  std::deque<std::shared_ptr<Job>> queue;
  Position planned, delivered;
  bool continuous = false, consumer_waits = false, stopping = false;
  bool at_rest = true;         // no batch of this epoch has been asked for, or all were delivered
  bool giving_back = false;    // nothing is read ahead into what is about to go
  int tightened = 0;           // above 0: nothing is read ahead
  std::exception_ptr failure;  // of a thread that could not even plan

  OfferedParts offered;
  Turns turns;
  std::condition_variable stand_in_wanted, batch_ready, job_done;
  LoaderTimes times;
  size_t most_stand_ins;
  std::vector<std::thread> stand_in_threads;

  const bool may_lend;
  std::vector<std::thread> threads;
  bool positioned = false;
  uint64_t skipped = 0;
  Position counted_to;  // of the epoch that is read: skipped samples before it are counted
  RungRegistration rung = add_rung({.name = "batches read ahead",
                                    .order = 200,
                                    .give_back = [this](int64_t wanted) { return try_to_drop_read_ahead(wanted); },
                                    .tighten = [this] { read_nothing_ahead(); },
                                    .relax = [this] { read_ahead_again(); }});
};

Loader::Loader(std::shared_ptr<const Source> source, Split split, Normalizer normalizer, LoaderOptions options)
    : state_(std::make_unique<State>(std::move(source), std::move(split), std::move(normalizer), options)) {}

Loader::~Loader() = default;

int64_t Loader::batch_size() const { return state_->plan.options.batch_size; }

uint64_t Loader::samples_per_epoch() const { return state_->plan.samples_per_epoch; }

uint64_t Loader::batches_per_epoch() const {
  const auto size = static_cast<uint64_t>(state_->plan.options.batch_size);
  return (samples_per_epoch() + size - 1) / size;
}

void Loader::seek(uint64_t epoch, uint64_t position, bool continuous) {
  State& state = *state_;
  std::deque<std::shared_ptr<Job>> dropped;
  {
    const std::lock_guard lock(state.pool->mutex);
    dropped.swap(state.queue);
    state.planned = state.delivered = {epoch, position};
    state.continuous = continuous;
    state.at_rest = true;
    state.failure = nullptr;
  }
  dropped.clear();
  state.positioned = true;
  if (state.ended(state.delivered)) return;
  state.start_threads();
  state.let_go_on(std::unique_lock(state.pool->mutex));
}

std::optional<Batch> Loader::next() {
  State& state = *state_;
  if (!state.positioned) seek(0);
  if (state.ended(state.delivered)) {
    state.end_epoch();
    return std::nullopt;
  }
  {
    const std::lock_guard lock(state.pool->mutex);
    state.at_rest = false;
  }
  const auto began = Clock::now();
  const std::shared_ptr<Job> job = state.plan.options.num_workers == 0 ? state.read_here() : state.take_from_threads();
  {
    const std::lock_guard lock(state.pool->mutex);
    state.times.stall += seconds_since(began);
    state.delivered.first += static_cast<uint64_t>(state.plan.options.batch_size);
  }
  state.count_skipped(*job);
  if (job->error) std::rethrow_exception(job->error);
  return std::move(job->batch);
}

uint64_t Loader::skipped_samples() const { return state_->skipped; }

LoaderTimes Loader::times() const {
  const std::lock_guard lock(state_->pool->mutex);
  return state_->times;
}

}  // namespace headroom
