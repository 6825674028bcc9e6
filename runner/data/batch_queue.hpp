// Which batches of a split are on their way: planned in the order of its epochs, read in any order, delivered as
// planned.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "data/batch_reader.hpp"

namespace headroom {

// Samples of one epoch: the whole split, or as many as the options ask for.
uint64_t epoch_length(const Split& split, const LoaderOptions& options);
int64_t batches_per_epoch(const BatchPlan& plan);

struct Position {
  uint64_t epoch = 0, first = 0;  // of a sample, in the epoch's order
  auto operator<=>(const Position&) const = default;
};

// One batch on its way. The thread that reads it is the only one to write it until `done` is set under the loader's
// mutex; next() has it after that.
struct Job {
  Position position;
  Batch batch;
  std::exception_ptr error;
  std::vector<SkippedSample> skipped;
  bool done = false;
};

// Has no lock: its owner guards it. Invariant: the jobs are the batches from the one that is delivered next to the last
// one planned, without a gap.
class BatchQueue {
 public:
  using Jobs = std::deque<std::shared_ptr<Job>>;

  // `plan` outlives it.
  explicit BatchQueue(const BatchPlan& plan) : plan_(plan) {}

  // The batch at `next` is planned and delivered next. Moves what was queued into `dropped`, which is empty: those jobs
  // hold slots, so destroy them without the owner's mutex. Allocates nothing.
  void seek(const Position& next, bool continuous, Jobs& dropped);

  // Whether plan_next() has a batch to plan. Batches of the next epoch are planned once it has begun to be delivered,
  // and before that where threads persist; the epoch after the last one only while the consumer waits for it.
  bool has_more(bool consumer_waits) const;

  // REQUIRES has_more(), or that the epoch is not over. `queued`: false where the caller reads and delivers it itself.
  // Where it throws (std::bad_alloc) nothing has changed.
  std::shared_ptr<Job> plan_next(bool queued);

  std::shared_ptr<Job> take_front();  // REQUIRES !empty()

  // Takes the last batch back, to be planned again. False: no more than `kept` are queued, or it is being read.
  bool drop_last(size_t kept);

  bool empty() const { return jobs_.empty(); }
  size_t size() const { return jobs_.size(); }
  bool front_is_done() const { return !jobs_.empty() && jobs_.front()->done; }
  bool all_done() const;

  // What next() has delivered.
  bool epoch_is_over() const { return ended(delivered_); }
  void count_delivered();
  bool begin_next_epoch();  // false: seek() was not continuous

 private:
  bool ended(const Position& at) const { return at.first >= plan_.samples_per_epoch; }

  const BatchPlan& plan_;
  Jobs jobs_;
  Position planned_, delivered_;  // the next batch to plan, to deliver
  bool continuous_ = false;
};

}  // namespace headroom
