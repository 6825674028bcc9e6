#include "data/turns.hpp"

#include <chrono>

namespace headroom {

bool Turns::lend() {
  {
    const std::lock_guard lock(mutex_);
    if (!lends_) return false;
    --working_;
    ++pausing_;
  }
  changed_.notify_all();
  return true;
}

void Turns::take_back() {
  constexpr std::chrono::seconds patience(1);
  std::unique_lock lock(mutex_);
  --pausing_;
  ++coming_back_;
  if (!changed_.wait_for(lock, patience, [this] { return working_ < most_; })) lends_ = false;
  --coming_back_;
  ++working_;
}

}  // namespace headroom
