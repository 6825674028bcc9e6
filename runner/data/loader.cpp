#include "data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <spdlog/spdlog.h>
#include <utility>

#include "arrays/read_hooks.hpp"
#include "data/batch_queue.hpp"
#include "data/cache_session.hpp"
#include "data/reader_pool.hpp"
#include "memory/relief.hpp"
#include "mutex.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t most_warnings = 10;  // about skipped samples; further ones are only counted

int64_t batch_bytes(const BatchPlan& plan) { return slot_bytes(plan.source->fields(), plan.options.slot_samples()); }

// Slots beyond batches_ahead() are made only when reads wait for the disk.
std::shared_ptr<SlotPool> make_slots(const BatchPlan& plan, std::function<void()> returned) {
  const LoaderOptions& options = plan.options;
  const int64_t bytes = batch_bytes(plan);
  const size_t most = slot_count(options, bytes, batches_in_all(options, batches_per_epoch(plan)));
  const size_t of_the_disk = batches_ahead_of_disk(options, bytes) - batches_ahead(options, bytes);
  const size_t usual = std::min(most, slot_count(options, bytes) - of_the_disk);
  return std::make_shared<SlotPool>(plan.source->fields(), options.slot_samples(), most, usual, std::move(returned),
                                    options.page_lock);
}

}  // namespace

// Invariants.
// - Jobs are planned in the order of the queue under the mutex, read outside of it in any order, and taken from its
//   front.
// - At most as many are queued as may be read ahead, and each of them has a slot. The one that next() waits for is the
//   exception: it is read whether a slot is free or not.
// - Whatever makes reading possible (a batch was taken, a slot came back, seek()) is followed by wake_readers(). So a
//   thread that found nothing to read may sleep.
// - Lock order: this mutex first, then those of the slots or of the readers.
struct Loader::State {
  using Kind = ReaderPool::Kind;

  State(std::shared_ptr<const Source> source, Split split, Normalizer normalizer, LoaderOptions options)
      : plan{std::move(source), std::move(split), std::move(normalizer), options, 0, nullptr},
        inline_reader(plan),
        read_ahead(batches_ahead(options, batch_bytes(plan))),
        read_ahead_of_disk(batches_ahead_of_disk(options, batch_bytes(plan))),
        readers(std::make_shared<ReaderPool>(static_cast<size_t>(std::max(0, options.num_workers)),
                                             extra_readers(options, read_ahead_of_disk),
                                             [this](Kind kind) { return make_reader(kind); })),
        slots(make_slots(plan, [readers = readers] {
          readers->wake(Kind::worker);
          readers->wake(Kind::extra);
        })) {
    if (options.batch_size < 1)
      throw Error(Exit::bad_input, "data",
                  "train.batch_size is " + std::to_string(options.batch_size) + "; at least 1 is needed");
    plan.samples_per_epoch = epoch_length(plan.split, options);
    if (options.keep_samples) {
      plan.kept = std::make_shared<KeptSamples>(cache_of(plan.source->session())->blocks, plan.source->fields(),
                                                *options.keep_samples);
    }
    plan.options.num_workers = std::max(0, options.num_workers);
  }
  ~State() { readers->stop(); }  // lent slots may outlive this; wake() then finds no threads

  // --- what is read next ---

  bool is_waited_for() const REQUIRES(mutex) { return queue.empty() && consumer_waits; }

  bool may_plan(Kind kind) const REQUIRES(mutex) {
    if (seeks || failure != nullptr || !queue.has_more(consumer_waits)) return false;
    if (is_waited_for()) return true;
    const size_t most = kind == Kind::extra ? read_ahead_of_disk : read_ahead;
    return tightened == 0 && queue.size() < most && slots->has_room();
  }

  // --- on threads that read ---

  ReaderPool::ReadOne make_reader(Kind kind) {
    return [this, kind, reader = std::make_shared<BatchReader>(plan)](ReaderPauses& pauses) {
      return read_one(*reader, kind, pauses);
    };
  }

  bool read_one(BatchReader& reader, Kind kind, ReaderPauses& pauses) EXCLUDES(mutex) {
    bool grows = false;
    {
      const MutexLock lock(mutex);
      if (!may_plan(kind)) return false;
      grows = tightened == 0 && slots->begin_to_grow();
    }
    // Without the mutex: making a slot may take long. What was true before is checked again after it.
    if (grows) slots->grow();
    std::shared_ptr<Job> job;
    std::unique_ptr<Slot> slot;
    {
      const MutexLock lock(mutex);
      if (!may_plan(kind) || !(is_waited_for() || slots->has_free())) return false;
      try {
        job = queue.plan_next(/*queued=*/true);
        slot = slots->reserve();
      } catch (const std::bad_alloc&) {  // next() throws it
        failure = std::current_exception();
        batch_ready.notify_one();
        return false;
      }
    }
    wake_readers();
    fill(*job, std::move(slot), reader);
    finish(std::move(job), reader.take_times(), pauses.take_disk_seconds());
    return true;
  }

  void fill(Job& job, std::unique_ptr<Slot> reserved, BatchReader& reader) {
    try {
      auto slot = slots->lend(std::move(reserved));
      job.batch = reader.read(job.position.epoch, job.position.first, std::move(slot), job.skipped);
    } catch (...) {
      job.error = std::current_exception();
    }
  }

  void finish(std::shared_ptr<Job> job, const BatchReader::Times& took, double disk_seconds) EXCLUDES(mutex) {
    bool wanted = false;
    {
      const MutexLock lock(mutex);
      times.disk += disk_seconds;
      times.decode += std::max(0.0, took.source - disk_seconds);
      times.normalize += took.normalize;
      ++times.batches;
      job->done = true;
      wanted = consumer_waits && front_is_ready();
      job.reset();  // whoever drops what is done counts on getting its slot
    }
    // Once the mutex is free, so that a thread that wakes does not wait for it at once.
    job_done.notify_all();
    if (wanted) batch_ready.notify_one();
  }

  // Wakes one thread of each kind for which there is something to read. That thread calls this again once it has
  // planned a batch, to wake the next.
  void wake_readers() EXCLUDES(mutex) {
    bool worker = false, extra = false;
    {
      const MutexLock lock(mutex);
      worker = may_plan(Kind::worker);
      extra = may_plan(Kind::extra);
    }
    if (worker) readers->wake(Kind::worker);
    if (extra) readers->wake(Kind::extra);
  }

  // --- next() ---

  bool front_is_ready() const REQUIRES(mutex) { return failure != nullptr || queue.front_is_done(); }

  // False where the epoch is over.
  bool begin_next() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (queue.epoch_is_over()) return false;
    at_rest = false;
    return true;
  }

  // num_workers = 0: reads the batch on the consumer's thread.
  std::shared_ptr<Job> read_here() EXCLUDES(mutex) {
    std::shared_ptr<Job> job;
    std::unique_ptr<Slot> slot;
    {
      const MutexLock lock(mutex);
      job = queue.plan_next(/*queued=*/false);
      slot = slots->reserve();
    }
    ReaderPauses pauses;
    const ListenToPauses listening(pauses);
    fill(*job, std::move(slot), inline_reader);
    finish(job, inline_reader.take_times(), pauses.take_disk_seconds());
    return job;
  }

  std::shared_ptr<Job> take_from_threads() EXCLUDES(mutex) {
    readers->start();
    wait_for_front();
    std::shared_ptr<Job> job;
    {
      const MutexLock lock(mutex);
      if (failure != nullptr) std::rethrow_exception(std::exchange(failure, nullptr));
      job = queue.take_front();
    }
    wake_readers();
    return job;
  }

  void wait_for_front() EXCLUDES(mutex) {
    if (!begin_wait()) return;
    const MutexLock lock(mutex);
    while (!front_is_ready()) batch_ready.wait(mutex);
    consumer_waits = false;
  }

  // False once `end` has passed. A thread that then still reads is not disturbed.
  bool wait_for_front(Clock::time_point end) EXCLUDES(mutex) {
    if (!begin_wait()) return true;
    const auto began = Clock::now();
    const MutexLock lock(mutex);
    while (!front_is_ready() && batch_ready.wait_until(mutex, end)) continue;
    consumer_waits = false;
    times.stall += std::chrono::duration<double>(Clock::now() - began).count();
    return front_is_ready();
  }

  // False where there is nothing to wait for.
  bool begin_wait() EXCLUDES(mutex) {
    {
      const MutexLock lock(mutex);
      if (front_is_ready()) return false;
      consumer_waits = true;
    }
    wake_readers();
    return true;
  }

  // Ends the epoch, and its threads unless they persist.
  void end_epoch() EXCLUDES(mutex) {
    counted_to = {};
    if (!plan.options.persistent_workers) readers->stop();
    {
      const MutexLock lock(mutex);
      at_rest = true;
      if (!queue.begin_next_epoch()) return;
    }
    wake_readers();
  }

  // A sample that is read again after seek() is counted once.
  void count_skipped(const Job& job) {
    for (const SkippedSample& sample : job.skipped) {
      if (Position{job.position.epoch, sample.position} < counted_to) continue;
      counted_to = {job.position.epoch, sample.position + 1};
      if (skipped++ < most_warnings) spdlog::warn("skipped: {}", sample.sentence);
    }
  }

  // Returns once no batch of the queue is being read.
  void wait_for_reads() REQUIRES(mutex) {
    while (!queue.all_done()) job_done.wait(mutex);
  }

  // --- under memory pressure ---

  // Frees free slots first, then those of batches read ahead, the last one planned first; all slots between epochs. A
  // batch that is dropped is planned again later. Allocates nothing.
  int64_t drop_read_ahead(int64_t wanted_bytes) REQUIRES(mutex) {
    const size_t kept = at_rest ? 0 : 1, waited_for = consumer_waits ? 1 : 0;
    int64_t returned = slots->drop_free(kept, wanted_bytes);
    while (returned < wanted_bytes && queue.drop_last(waited_for))
      returned += slots->drop_free(kept, wanted_bytes - returned);
    return returned;
  }

  // Called in the middle of an allocation, perhaps of a thread that holds the mutex: so it never waits for it.
  int64_t try_to_drop_read_ahead(int64_t wanted_bytes) EXCLUDES(mutex) {
    // Page-locked memory is let go of by a GPU's driver, which may be who called malloc.
    if (plan.options.page_lock.lock != nullptr && inside_malloc()) return 0;
    if (!mutex.try_lock()) return 0;
    const MutexLock lock(mutex, std::adopt_lock);
    return drop_read_ahead(wanted_bytes);
  }

  // From now on nothing is read ahead, and what was read ahead is dropped. Waits for what is being read.
  void read_nothing_ahead() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    ++tightened;
    wait_for_reads();
    drop_read_ahead(std::numeric_limits<int64_t>::max());
  }

  void read_ahead_again() EXCLUDES(mutex) {
    {
      const MutexLock lock(mutex);
      --tightened;
      slots->may_grow_again();
    }
    wake_readers();
  }

  BatchPlan plan;             // immutable once the loader is made
  BatchReader inline_reader;  // of num_workers = 0
  const size_t read_ahead, read_ahead_of_disk;
  const std::shared_ptr<ReaderPool> readers;
  const std::shared_ptr<SlotPool> slots;

  mutable Mutex mutex;
  Condition batch_ready, job_done;
  BatchQueue queue GUARDED_BY(mutex){plan};
  bool consumer_waits GUARDED_BY(mutex) = false;
  // Between epochs: none of this epoch's batches was asked for, or all were delivered.
  bool at_rest GUARDED_BY(mutex) = true;
  bool seeks GUARDED_BY(mutex) = false;          // no thread begins to read
  int tightened GUARDED_BY(mutex) = 0;           // steps of memory pressure; above 0 nothing is read ahead
  std::exception_ptr failure GUARDED_BY(mutex);  // of a thread that could not plan a batch; next() throws it
  LoaderTimes times GUARDED_BY(mutex);

  // Used by the consumer's thread only.
  bool positioned = false;  // seek() was called
  uint64_t skipped = 0;
  Position counted_to;  // skipped samples before this position of the epoch were counted

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
  {
    BatchQueue::Jobs dropped;  // before the lock, so that it is destroyed after it
    const MutexLock lock(state.mutex);
    // What is being read has a slot: beside it the next batch might not fit.
    state.seeks = true;
    state.wait_for_reads();
    state.seeks = false;
    state.queue.seek({epoch, position}, continuous, dropped);
    state.at_rest = true;
    state.failure = nullptr;
  }
  state.positioned = true;
  if (position >= state.plan.samples_per_epoch) return;
  state.readers->start();
  state.wake_readers();
}

std::optional<Batch> Loader::next() {
  State& state = *state_;
  if (!state.positioned) seek(0);
  if (!state.begin_next()) {
    state.end_epoch();
    return std::nullopt;
  }
  const auto began = Clock::now();
  const std::shared_ptr<Job> job = state.plan.options.num_workers == 0 ? state.read_here() : state.take_from_threads();
  {
    const MutexLock lock(state.mutex);
    state.times.stall += std::chrono::duration<double>(Clock::now() - began).count();
    state.queue.count_delivered();
  }
  state.count_skipped(*job);
  if (job->error) std::rethrow_exception(job->error);
  return std::move(job->batch);
}

bool Loader::wait_until(Clock::time_point end) {
  State& state = *state_;
  if (!state.positioned) seek(0);
  if (state.plan.options.num_workers == 0 || !state.begin_next()) return true;
  state.readers->start();
  return state.wait_for_front(end);
}

uint64_t Loader::skipped_samples() const { return state_->skipped; }

LoaderTimes Loader::times() const {
  const ReaderPool::Times of_threads = state_->readers->times();
  const MutexLock lock(state_->mutex);
  LoaderTimes times = state_->times;
  times.idle += of_threads.idle;
  times.disk += of_threads.disk;
  return times;
}

}  // namespace headroom
