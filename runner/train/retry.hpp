// What happens when memory runs out (docs/memory.md). First, free memory is released and exactly the same attempt is
// repeated. The second time, whatever only buys speed is reduced as well: reading ahead, and the caches to half. Then
// the micro-batch is halved. Where it cannot get smaller, the model keeps less for backward. When nothing is left to
// try, the run ends.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "memory/relief.hpp"
#include "memory/tensor_allocator.hpp"
#include "train/shortage.hpp"

namespace headroom {

// How many samples go through forward and backward at once. Either a fixed number, or as many as memory allows: halved
// when memory runs out, and doubled when the measured peaks say that it would fit.
class MicroBatch {
 public:
  // Begins at `most`. With `adapts` it may change between 1 and `most`; otherwise it stays.
  MicroBatch(int64_t most, bool adapts) : most_(most), size_(most), adapts_(adapts) {}

  int64_t size() const { return size_; }
  bool adapts() const { return adapts_; }
  bool is_largest() const { return size_ == most_ || !adapts_; }

  // Call it when memory ran out. Returns false where it is 1 or fixed.
  bool halve();

  // Call it after a window (or evaluation batch) that fitted. `peak_bytes`: what the process held at its peak;
  // `growing_bytes`: the part of it that grows with the micro-batch; `limit_bytes`: the limit, 0: none. Doubles the
  // micro-batch when twice the growing part fits into 0.9 of the limit, and enough windows have passed since memory
  // last ran out. Each failure doubles that number of windows. Returns whether the micro-batch grew.
  bool succeeded(int64_t peak_bytes, int64_t growing_bytes, int64_t limit_bytes);

  // Under memory pressure: halves it, and keeps it from growing until allow_growth().
  void shrink_and_hold();
  void allow_growth() { held_back_ = false; }

  // Takes the size of a resumed run.
  void restore(int64_t size);
  // The same, where it may be larger than `most` was.
  void begin_at(int64_t size);

 private:
  static constexpr int64_t first_patience = 20, most_patience = 5120;
  int64_t most_, size_;
  bool adapts_, held_back_ = false;
  int64_t good_windows_ = 0, patience_ = first_patience;
};

struct RetryCounts {
  int64_t repeated = 0;  // with the same micro-batch: bit-equal
  int64_t halved = 0;    // with half of it: equal up to rounding
  int64_t grown = 0;
  int64_t recomputed = 0;  // kinds of calls that are recomputed since then
};

// Repeats one activity when memory runs out. Training, evaluation and prediction have one Retry each. [compute]
class Retry {
 public:
  using Report = std::function<void(const Shortage&, const std::string& action)>;
  // `report` is called for every shortage that the run survived.
  Retry(MicroBatch micro_batch, c10::Device device, Advice advice, Report report)
      : micro_batch_(micro_batch), device_(device), advice_(std::move(advice)), report_(std::move(report)) {}

  // Sets a function that is called when the micro-batch cannot get smaller. It makes the next step need less memory and
  // returns a sentence that says how, or "" if it cannot.
  void when_smallest(std::function<std::string()> keep_less) { keep_less_ = std::move(keep_less); }

  MicroBatch& micro_batch() { return micro_batch_; }
  int64_t size() const { return micro_batch_.size(); }
  const RetryCounts& counts() const { return counts_; }

  // Call it after an attempt ran out of memory, when the tensors of the attempt are gone. Makes room and returns; the
  // caller then repeats the attempt with micro-batches of size(), which may be smaller now. Error(does_not_fit), or
  // TakenByOthers, when nothing is left to try.
  void after(const Shortage& shortage);

  // Call it after an attempt that fitted: the next shortage counts as a first one again, and the micro-batch may grow
  // back.
  void succeeded();

  // Undoes what after() did to reading ahead and to the caches. Call it when the activity ends.
  void restore_speed();

 private:
  MicroBatch micro_batch_;
  c10::Device device_;
  Advice advice_;
  Report report_;
  bool trade_speed_for_memory();
  void restore_speed_when_due();

  std::function<std::string()> keep_less_;
  RetryCounts counts_;
  int64_t in_a_row_ = 0;
  std::vector<std::shared_ptr<const Rung>> slower_;  // tightened by trade_speed_for_memory()
  int64_t good_windows_ = 0, patience_ = 64;         // until they are relaxed
};

// Runs `attempt`. Returns false when memory ran out; `shortage` then holds the figures of that moment. `doing` names
// the part of the attempt that was running.
template <class Attempt>
bool attempt_within_memory(Shortage& shortage, const char*& doing, int64_t micro_batch, Attempt&& attempt) {
  try {
    attempt();
    return true;
  } catch (const c10::OutOfMemoryError&) {
    shortage = Shortage::now(doing, micro_batch);
    if (shortage.requested_bytes == 0) shortage.cause = std::current_exception();  // of a device, which says how much
  } catch (const std::bad_alloc&) {
    shortage = Shortage::now(doing, micro_batch);
  } catch (const Error& problem) {  // of a plugin, or of the loader
    if (problem.exit_code() != Exit::does_not_fit) throw;
    shortage = Shortage::now(doing, micro_batch);
    shortage.cause = std::current_exception();
  }
  return false;
}

// For work that can neither be repeated nor made smaller: throws what Advice::give_up() throws in place of a bad_alloc.
template <class Body>
auto or_give_up(const char* doing, const Advice& advice, Body&& body) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError&) {
    advice.give_up(Shortage::now(doing, 0));
  } catch (const std::bad_alloc&) {
    advice.give_up(Shortage::now(doing, 0));
  }
}

// For work that can be repeated but not made smaller: set-up, checkpoints. Its tensors are accounted to `owner`.
template <class Body>
void with_one_retry(const char* doing, Owner owner, c10::Device device, const Advice& advice, Body&& body) {
  const OwnerScope scope(owner);
  Shortage shortage;
  if (attempt_within_memory(shortage, doing, 0, body)) return;
  purge_tensor_memory(device);
  if (!attempt_within_memory(shortage, doing, 0, body)) advice.give_up(shortage);
}

}  // namespace headroom
