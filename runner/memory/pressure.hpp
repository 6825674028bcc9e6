// Climbs the pressure ladder (memory/relief.hpp) while memory stays short, and comes back down when it no longer is.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "memory/relief.hpp"

namespace headroom {

// [control] One a run, judged between two windows.
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
