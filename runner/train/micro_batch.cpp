#include "train/micro_batch.hpp"

#include <algorithm>

namespace headroom {

bool MicroBatch::halve() {
  if (!adapts_ || size_ == 1) return false;
  size_ = (size_ + 1) / 2;
  good_windows_ = 0;
  patience_ = std::min(2 * patience_, most_patience);
  return true;
}

bool MicroBatch::succeeded(int64_t peak_bytes, int64_t growing_bytes, int64_t limit_bytes) {
  if (!adapts_ || held_back_ || size_ == most_ || ++good_windows_ < patience_) return false;
  const bool fits = limit_bytes <= 0 || peak_bytes + growing_bytes <= limit_bytes - limit_bytes / 10;
  if (!fits) return false;
  size_ = std::min(2 * size_, most_);
  good_windows_ = 0;
  return true;
}

void MicroBatch::shrink_and_hold() {
  halve();
  held_back_ = true;
}

void MicroBatch::restore(int64_t size) {
  if (adapts_) size_ = std::clamp<int64_t>(size, 1, most_);
}

}  // namespace headroom
