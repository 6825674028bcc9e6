// Running out of memory: what was held at that moment, and the sentence that ends a run which cannot be made any
// smaller.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "config/experiment.hpp"
#include "error.hpp"
#include "memory/ledger.hpp"

namespace headroom {

// Plain figures: taking them allocates nothing.
struct Shortage {
  const char* doing = "";       // "forward", "backward", "writing a checkpoint"
  int64_t requested_bytes = 0;  // 0: nobody knows, the system refused
  int64_t promised_bytes = 0;   // before that, and not written yet
  int64_t limit_bytes = 0;      // 0: none
  int64_t micro_batch = 0;      // 0: not about one
  LedgerReading ledger;
  std::exception_ptr cause = nullptr;  // the Error that reported it, where one did
  static Shortage now(const char* doing, int64_t micro_batch);
  std::string text() const;         // "no memory for forward with a micro-batch of 1"
  bool is_taken_by_others() const;  // it would have fitted what the run was given
  std::string figures() const;      // "2.0 MiB more were asked for beside ...; held: ..."
};

// What does not fit would fit what the run was given at its start: others hold it now. Exit::resumable.
class TakenByOthers : public Error {
 public:
  explicit TakenByOthers(const Shortage& shortage);

 protected:
  explicit TakenByOthers(const std::string& sentence) : Error(Exit::resumable, "memory", sentence) {}
};

// The same, of another process of the run.
class TakenOnAnotherRank : public TakenByOthers {
 public:
  TakenOnAnotherRank(int rank, const std::string& host)
      : TakenByOthers("others took the memory of rank " + std::to_string(rank) + " on host " + host) {}
};

// `action`, with Error(does_not_fit) for memory that ran out where nothing can be repeated and no experiment is known.
std::function<void()> within_memory(std::function<void()> action);

// Knows the experiment's knobs, and which of them would help.
class Advice {
 public:
  // `whole`: why batches cannot be divided further ("" when they can). `recomputes`: the model offers memory.recompute.
  Advice(const Experiment& experiment, std::string whole, bool recomputes)
      : experiment_(experiment), whole_(std::move(whole)), recomputes_(recomputes) {}

  // Above 90 % of the machine's or the cgroup's memory: the largest owner, and its knob.
  std::string warning(const LedgerReading& ledger) const;

  // Error(does_not_fit): the ledger, what would be needed, and the knobs that would make it fit, cheapest first. Or
  // TakenByOthers.
  [[noreturn]] void give_up(const Shortage& shortage) const;

 private:
  std::string knobs(const Shortage& shortage) const;
  const Experiment& experiment_;
  std::string whole_;
  bool recomputes_;
};

}  // namespace headroom
