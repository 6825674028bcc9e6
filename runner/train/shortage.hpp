// Running out of memory: the figures of that moment, and the sentence that ends a run which cannot get smaller.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "config/experiment.hpp"
#include "error.hpp"
#include "memory/ledger.hpp"

namespace headroom {

// Plain figures; making one allocates nothing.
struct Shortage {
  const char* doing = "";       // "forward", "backward", "writing a checkpoint"
  int64_t requested_bytes = 0;  // 0: unknown, the system refused
  int64_t promised_bytes = 0;   // granted before, and not written yet
  int64_t limit_bytes = 0;      // 0: none
  int64_t micro_batch = 0;      // 0: not about one
  LedgerReading ledger;
  std::exception_ptr cause = nullptr;  // what reported it, where it says more: an Error, or LibTorch's of a device
  static Shortage now(const char* doing, int64_t micro_batch);
  std::string text() const;         // "no memory for forward with a micro-batch of 1"
  bool is_taken_by_others() const;  // it would have fitted the memory that the run was given
  std::string figures() const;      // "2.0 MiB more were asked for beside ...; held: ..."
};

// The request would fit the memory that the run was given at its start, but other processes hold that memory now.
// Exit::resumable.
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

// Wraps `action`: running out of memory becomes Error(does_not_fit). For code that can repeat nothing and knows no
// experiment.
std::function<void()> within_memory(std::function<void()> action);

// Names the keys of the experiment that would reduce its memory.
class Advice {
 public:
  // `whole`: why batches cannot be divided further; "" where they can. `recomputes`: the model offers memory.recompute.
  Advice(const Experiment& experiment, std::string whole, bool recomputes)
      : experiment_(experiment), whole_(std::move(whole)), recomputes_(recomputes) {}

  // A warning once the machine or the cgroup is more than 90 % full: the largest owner, and the key that makes it
  // smaller.
  std::string warning(const LedgerReading& ledger) const;

  // Throws Error(does_not_fit) with the ledger, what would be needed, and the keys that would make it fit, the cheapest
  // first. Or TakenByOthers.
  [[noreturn]] void give_up(const Shortage& shortage) const;

 private:
  std::string knobs(const Shortage& shortage) const;
  const Experiment& experiment_;
  std::string whole_;
  bool recomputes_;
};

}  // namespace headroom
