// After running out of memory: give back what is free and repeat exactly what failed; the second time without what only
// buys speed (reading ahead, half of the caches); then in smaller pieces; where nothing smaller exists, keeping less
// for backward; and then end the run (docs/memory.md).
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

// How many samples go through forward and backward at once: a fixed number, or as many as memory allows, found by
// halving when it runs out and doubling back when the measured peaks say that it would fit.
class MicroBatch {
 public:
  // Begins at `most`. `adapts`: may change, between 1 and `most`; otherwise it stays.
  MicroBatch(int64_t most, bool adapts) : most_(most), size_(most), adapts_(adapts) {}

  int64_t size() const { return size_; }
  bool adapts() const { return adapts_; }
  bool is_largest() const { return size_ == most_ || !adapts_; }

  // After running out of memory. false: nothing smaller exists, or it is fixed.
  bool halve();

  // After a window (or evaluation batch) that went through: what the process held at its peak, the part of it that
  // grows with the micro-batch, and the limit (0: none). Doubles when twice the growing part fits into 0.9 of the
  // limit, and enough windows went by since it last ran out; each failure doubles how many that is. Returns whether it
  // grew.
  bool succeeded(int64_t peak_bytes, int64_t growing_bytes, int64_t limit_bytes);

  // Under pressure: halves it, and keeps it from growing until allow_growth().
  void shrink_and_hold();
  void allow_growth() { held_back_ = false; }

  // Of a resumed run.
  void restore(int64_t size);

 private:
  static constexpr int64_t first_patience = 20, most_patience = 5120;
  int64_t most_, size_;
  bool adapts_, held_back_ = false;
  int64_t good_windows_ = 0, patience_ = first_patience;
};

struct RetryCounts {
  int64_t repeated = 0;  // at the same split: bit-equal
  int64_t halved = 0;    // at half of it: equal up to rounding
  int64_t grown = 0;
  int64_t recomputed = 0;  // kinds of calls that are computed again since
};

// Of one activity that is repeated: training, evaluation and prediction have one each. [compute]
class Retry {
 public:
  using Report = std::function<void(const Shortage&, const std::string& action)>;
  // `report` hears of every shortage that was survived.
  Retry(MicroBatch micro_batch, c10::Device device, Advice advice, Report report)
      : micro_batch_(micro_batch), device_(device), advice_(std::move(advice)), report_(std::move(report)) {}

  // Called where no smaller micro-batch exists. It makes the next step need less and returns a sentence that says how,
  // or "" if it cannot.
  void when_smallest(std::function<std::string()> keep_less) { keep_less_ = std::move(keep_less); }

  MicroBatch& micro_batch() { return micro_batch_; }
  int64_t size() const { return micro_batch_.size(); }
  const RetryCounts& counts() const { return counts_; }

  // After an attempt that ran out of memory; its tensors must be gone. Makes room and returns: the caller repeats the
  // attempt, with micro-batches of size(), which may be smaller now. Error(does_not_fit), or TakenByOthers, when there
  // is nothing more to try.
  void after(const Shortage& shortage);

  // The attempt went through. The next shortage is a first one again; the micro-batch may grow back.
  void succeeded();

  // Reading ahead and caches are as fast again as before after() slowed them down. For the end of what this retried.
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

// Runs `attempt`; false when memory ran out, and then `shortage` says what was held. `doing` names the attempt's part
// that was under way.
template <class Attempt>
bool attempt_within_memory(Shortage& shortage, const char*& doing, int64_t micro_batch, Attempt&& attempt) {
  try {
    attempt();
    return true;
  } catch (const c10::OutOfMemoryError&) {
    shortage = Shortage::now(doing, micro_batch);
  } catch (const std::bad_alloc&) {
    shortage = Shortage::now(doing, micro_batch);
  } catch (const Error& problem) {  // of a plugin, or of the loader
    if (problem.exit_code() != Exit::does_not_fit) throw;
    shortage = Shortage::now(doing, micro_batch);
    shortage.cause = std::current_exception();
  }
  return false;
}

// For what can neither be begun again nor be made smaller: what Advice::give_up() throws in place of a bad_alloc.
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

// For what can be begun again but not be made smaller: setting up, checkpoints. Its tensors belong to `owner`.
template <class Body>
void with_one_retry(const char* doing, Owner owner, c10::Device device, const Advice& advice, Body&& body) {
  const OwnerScope scope(owner);
  Shortage shortage;
  if (attempt_within_memory(shortage, doing, 0, body)) return;
  purge_tensor_memory(device);
  if (!attempt_within_memory(shortage, doing, 0, body)) advice.give_up(shortage);
}

}  // namespace headroom
