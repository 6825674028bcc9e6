// The pressure ladder: what a run gives back when memory is short, in a fixed order, before a request is refused or the
// run ends. Code that holds memory it can do without registers a rung. A request that does not fit climbs it at once
// (give_back_memory); shortage that lasts climbs it slowly (PressureLadder).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

struct Rung {
  std::string name;  // "sample cache", for log lines
  // Lower is taken first: 40 scratch memory of reads, 50 sample cache, 100 decoded chunks, 200 prefetch, 300 purge, 400
  // micro-batch, 500 checkpoint and exit.
  int order = 0;
  // Frees about `wanted_bytes` at once and returns how many it freed. Called from any thread in the middle of an
  // allocation. REQUIRES: it takes locks only with try_lock, and allocates nothing. Empty: this rung frees nothing at
  // once.
  std::function<int64_t(int64_t wanted_bytes)> give_back = {};
  // Makes the run smaller until relax(): when shortage lasts, or nothing else makes room for a window. Empty: it
  // cannot. [control]
  std::function<void()> tighten = {};
  // Undoes one tighten() when shortage is over. Empty: it cannot be undone. [control]
  std::function<void()> relax = {};
};

// Keeps a rung on the ladder while it lives. The destructor waits for a give_back() that is running. [any]
class RungRegistration {
 public:
  RungRegistration() = default;
  explicit RungRegistration(std::shared_ptr<const Rung> rung) : rung_(std::move(rung)) {}
  RungRegistration(RungRegistration&&) = default;
  RungRegistration& operator=(RungRegistration&& other);
  ~RungRegistration();
  explicit operator bool() const { return rung_ != nullptr; }

 private:
  std::shared_ptr<const Rung> rung_;
};
[[nodiscard]] RungRegistration add_rung(Rung rung);

// The rungs, lowest order first. [any]
std::vector<std::shared_ptr<const Rung>> rungs();

// Calls give_back() rung by rung until `wanted_bytes` are freed; returns the bytes that were. Returns 0 at once when
// called from inside a rung, or while another thread is in here: it never waits. [any]
int64_t give_back_memory(int64_t wanted_bytes);

// A mark of this thread that is set while the object lives. Nests. [any]
class ThreadMark {
 public:
  explicit ThreadMark(bool& mark) : mark_(mark), before_(std::exchange(mark, true)) {}
  ~ThreadMark() { mark_ = before_; }
  ThreadMark(const ThreadMark&) = delete;
  ThreadMark& operator=(const ThreadMark&) = delete;

 private:
  bool& mark_;
  bool before_;
};

// give_back_memory() does nothing on this thread: for code that allocates and holds a lock that freeing a tensor takes.
[[nodiscard]] ThreadMark give_nothing_back();

// This thread climbs the ladder in the middle of malloc, whose caller may be anybody, a GPU's driver with its locks
// held for one.
[[nodiscard]] ThreadMark enter_malloc();
bool inside_malloc();

// Climbs the ladder while shortage lasts, and comes back down when it is over. One a run. [control]
class PressureLadder {
 public:
  using Clock = std::chrono::steady_clock;
  using Say = std::function<void(const std::string& line)>;
  explicit PressureLadder(Say say) : say_(std::move(say)) {}

  // Call it between two windows. While `is_short`, it frees about `wanted_bytes` once a second, and tightens the next
  // rung for every `patience` that shortage lasts. After `calm` without shortage it relaxes the rung tightened last,
  // one at a time. Each change is one line to `say`.
  void judge(bool is_short, int64_t wanted_bytes, Clock::time_point now = Clock::now());

  size_t rungs_in_force() const { return in_force_.size(); }  // tightened and not relaxed
  int64_t tightened() const { return tightened_; }
  int64_t returned_bytes() const { return returned_bytes_; }

  static constexpr std::chrono::seconds patience{2}, calm{30};

 private:
  void tighten_next();

  Say say_;
  std::vector<std::shared_ptr<const Rung>> in_force_;
  Clock::time_point short_since_{}, last_change_{}, calm_since_{}, last_give_back_{};
  bool was_short_ = false;
  int64_t tightened_ = 0, returned_bytes_ = 0;
};

}  // namespace headroom
