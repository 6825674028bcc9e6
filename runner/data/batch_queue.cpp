#include "data/batch_queue.hpp"

#include <algorithm>
#include <utility>

namespace headroom {

uint64_t epoch_length(const Split& split, const LoaderOptions& options) {
  const uint64_t all = split.length();
  return options.samples_per_epoch < 0 ? all : std::min(all, static_cast<uint64_t>(options.samples_per_epoch));
}

int64_t batches_per_epoch(const BatchPlan& plan) {
  const auto samples = static_cast<int64_t>(epoch_length(plan.split, plan.options));
  const int64_t size = std::max<int64_t>(1, plan.options.batch_size);
  return (samples + size - 1) / size;
}

void BatchQueue::seek(const Position& next, bool continuous, Jobs& dropped) {
  dropped.swap(jobs_);
  planned_ = delivered_ = next;
  continuous_ = continuous;
}

bool BatchQueue::has_more(bool consumer_waits) const {
  if (!ended(planned_)) return true;
  if (!continuous_ || plan_.samples_per_epoch == 0) return false;
  const bool is_last = plan_.options.epochs >= 0 && static_cast<int64_t>(planned_.epoch) + 1 >= plan_.options.epochs;
  // Behind the last epoch that was asked for nothing is read ahead; but a consumer that asks for more gets it.
  const bool has_begun = planned_.epoch < delivered_.epoch;
  return is_last ? has_begun && consumer_waits : has_begun || plan_.options.persistent_workers;
}

std::shared_ptr<Job> BatchQueue::plan_next(bool queued) {
  auto job = std::make_shared<Job>();
  job->position = ended(planned_) ? Position{planned_.epoch + 1, 0} : planned_;
  // This may throw, so it comes before any change.
  if (queued) jobs_.push_back(job);
  planned_ = {job->position.epoch, job->position.first + static_cast<uint64_t>(plan_.options.batch_size)};
  return job;
}

std::shared_ptr<Job> BatchQueue::take_front() {
  auto job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

bool BatchQueue::drop_last(size_t kept) {
  if (jobs_.size() <= kept || !jobs_.back()->done) return false;
  planned_ = jobs_.back()->position;
  jobs_.pop_back();
  return true;
}

bool BatchQueue::all_done() const {
  return std::ranges::all_of(jobs_, [](const std::shared_ptr<Job>& job) { return job->done; });
}

void BatchQueue::count_delivered() { delivered_.first += static_cast<uint64_t>(plan_.options.batch_size); }

bool BatchQueue::begin_next_epoch() {
  if (!continuous_) return false;
  delivered_ = {delivered_.epoch + 1, 0};
  return true;
}

}  // namespace headroom
