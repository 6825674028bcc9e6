#include "memory/budget.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "memory/held.hpp"
#include "memory/relief.hpp"

namespace headroom {

namespace {

std::atomic<int64_t> limit{0};
std::mutex refusal_mutex;
Refusal refusal;

// Growth that was granted and is not touched yet does not show in U, but it will. What U has grown by since was
// touched; the rounded ends of allocations never are, so that settle() forgets them when a window is over.
class Grants {
 public:
  bool grant(int64_t bytes, int64_t bound) {
    const std::lock_guard lock(mutex_);
    const int64_t held = held_bytes();
    untouched_ = std::max<int64_t>(untouched_ - std::max<int64_t>(held - held_, 0), 0);
    held_ = held;
    if (held + untouched_ + bytes > bound) return false;
    untouched_ += bytes;
    return true;
  }
  int64_t untouched() {
    const std::lock_guard lock(mutex_);
    return untouched_;
  }
  void settle() {
    const std::lock_guard lock(mutex_);
    untouched_ = 0;
  }

 private:
  std::mutex mutex_;
  int64_t untouched_ = 0, held_ = 0;
};

Grants& grants() {
  static auto* made = new Grants;
  return *made;
}

}  // namespace

void set_memory_limit(int64_t limit_bytes) {
  grants();  // made now: may_grow() allocates nothing
  limit = limit_bytes;
}

int64_t memory_limit() { return limit; }

bool may_grow(int64_t bytes) {
  const int64_t bound = limit.load(std::memory_order_relaxed);
  return bound <= 0 || grants().grant(bytes, bound);
}

bool make_room(int64_t bytes) { return may_grow(bytes) || (give_back_memory(bytes) > 0 && may_grow(bytes)); }

void note_refusal(int64_t bytes) {
  const Refusal now{bytes, grants().untouched(), read_ledger()};
  const std::lock_guard lock(refusal_mutex);
  refusal = now;
}

Refusal take_refusal() {
  const std::lock_guard lock(refusal_mutex);
  Refusal taken = std::exchange(refusal, {});
  if (taken.bytes == 0) taken.ledger = read_ledger();
  return taken;
}

void settle_growth() { grants().settle(); }

}  // namespace headroom
