#include "data/turns.hpp"

#include <chrono>

namespace headroom {

bool Turns::lend() {
  if (!lends_) return false;
  --working_;
  ++pausing_;
  return true;
}

void Turns::take_back(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::seconds patience(1);
  --pausing_;
  ++coming_back_;
  if (!free_.wait_for(lock, patience, [this] { return working_ < most_; })) lends_ = false;
  --coming_back_;
  ++working_;
}

}  // namespace headroom
