// The pressure ladder: what a run gives up, in order, before it gives up itself. Whoever holds memory that it can do
// without registers a rung; memory/ knows none of them by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace headroom {

struct Rung {
  std::string name;  // "sample cache", for log lines
  // Lower is taken first: 50 sample cache, 100 decoded chunks, 200 prefetch, 300 purge, 400 micro-batch, 500 checkpoint
  // and exit.
  int order = 0;
  // [any] Gives back about `wanted_bytes`, from any thread and in the middle of an allocation: takes locks only with
  // try_lock, allocates nothing. Returns the bytes given back. Empty: nothing can be done at once.
  std::function<int64_t(int64_t wanted_bytes)> give_back = {};
  // [control] When pressure lasts, or nothing else makes room for a window: makes the run smaller, until relax().
  // Empty: nothing.
  std::function<void()> tighten = {};
  // [control] Undoes one tighten() when pressure has gone. Empty: it cannot be undone.
  std::function<void()> relax = {};
};

// A rung is on the ladder as long as its registration lives.
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

// What is on the ladder, lowest order first. [any]
std::vector<std::shared_ptr<const Rung>> rungs();

// [any] Asks the rungs in order to give back, until `wanted_bytes` are; returns how many were. A call from inside a
// rung, or while another thread is at it, returns 0 at once.
int64_t give_back_memory(int64_t wanted_bytes);

// Climbs the ladder while memory stays short, and comes back down when it no longer is. [control] One a run, judged
// between two windows.
class PressureLadder {
 public:
  using Clock = std::chrono::steady_clock;
  using Say = std::function<void(const std::string& line)>;
  explicit PressureLadder(Say say) : say_(std::move(say)) {}

  // While `is_short`: what can be given back at once is, every second; when that was not enough for `patience`, the
  // next rung is tightened. After `calm` without shortage the last one is relaxed, one at a time.
  void judge(bool is_short, int64_t wanted_bytes, Clock::time_point now = Clock::now());

  size_t rungs_in_force() const { return in_force_.size(); }
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
