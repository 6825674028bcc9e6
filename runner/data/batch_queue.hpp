// The batches of a split that are being read: planned in the order of its epochs, read in any order, delivered in the
// planned order.
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

// The number of samples in one epoch: the whole split, or as many as the options ask for.
uint64_t epoch_length(const Split& split, const LoaderOptions& options);
int64_t batches_per_epoch(const BatchPlan& plan);

struct Position {
  uint64_t epoch = 0, first = 0;  // of a sample, in the epoch's order
  auto operator<=>(const Position&) const = default;
};

// One batch that is being read. Only the thread that reads it writes it, until `done` is set under the loader's mutex;
// from then on next() owns it.
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

  // The batch at `next` is planned and delivered next. Moves the queued jobs into `dropped`, which must be empty. They
  // hold slots, so destroy them without holding the owner's mutex. Allocates nothing.
  void seek(const Position& next, bool continuous, Jobs& dropped);

  // Whether plan_next() has a batch to plan. Batches of the next epoch are planned once it has begun to be delivered,
  // or earlier with persistent threads. The epoch after the last one is planned only while the consumer waits for it.
  bool has_more(bool consumer_waits) const;

  // REQUIRES has_more(), or that the epoch is not over. `queued`: false where the caller reads and delivers it itself.
  // Where it throws (std::bad_alloc) nothing has changed.
  std::shared_ptr<Job> plan_next(bool queued);

  std::shared_ptr<Job> take_front();  // REQUIRES !empty()

  // Removes the last batch from the queue, to be planned again later. Returns false where at most `kept` are queued, or
  // it is being read.
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
