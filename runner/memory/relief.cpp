#include "memory/relief.hpp"

#include <algorithm>

#include "mutex.hpp"

namespace headroom {

namespace {

struct Ladder {
  Mutex mutex;
  std::vector<std::shared_ptr<const Rung>> rungs GUARDED_BY(mutex);  // by order
};

// Never destroyed: registrations may end while the process does.
Ladder& ladder() {
  static auto* made = new Ladder;
  return *made;
}

// This thread is inside a rung, and holds the ladder's mutex: it must not try to lock it again. Or it must not free.
thread_local bool gives_nothing_back = false;
thread_local bool in_malloc = false;

}  // namespace

ThreadMark give_nothing_back() { return ThreadMark(gives_nothing_back); }

ThreadMark enter_malloc() { return ThreadMark(in_malloc); }
bool inside_malloc() { return in_malloc; }

RungRegistration add_rung(Rung rung) {
  auto shared = std::make_shared<const Rung>(std::move(rung));
  Ladder& all = ladder();
  const MutexLock lock(all.mutex);
  const auto place =
      std::ranges::upper_bound(all.rungs, shared->order, {}, [](const auto& other) { return other->order; });
  all.rungs.insert(place, shared);
  return RungRegistration(std::move(shared));
}

RungRegistration::~RungRegistration() {
  if (rung_ == nullptr) return;
  Ladder& all = ladder();
  const MutexLock lock(all.mutex);
  std::erase(all.rungs, rung_);
}

RungRegistration& RungRegistration::operator=(RungRegistration&& other) {
  std::swap(rung_, other.rung_);
  return *this;
}

// A copy, so that rungs are called without the lock.
std::vector<std::shared_ptr<const Rung>> rungs() {
  Ladder& all = ladder();
  const MutexLock lock(all.mutex);
  return all.rungs;
}

int64_t give_back_memory(int64_t wanted_bytes) {
  if (gives_nothing_back) return 0;
  Ladder& all = ladder();
  if (!all.mutex.try_lock()) return 0;
  // Held while rungs run: a registration cannot end under one that does.
  const MutexLock lock(all.mutex, std::adopt_lock);
  const ThreadMark inside = give_nothing_back();
  int64_t returned = 0;
  for (const auto& rung : all.rungs) {
    if (returned >= wanted_bytes) break;
    if (rung->give_back) returned += rung->give_back(wanted_bytes - returned);
  }
  return returned;
}

void PressureLadder::judge(bool is_short, int64_t wanted_bytes, Clock::time_point now) {
  if (is_short != was_short_) {
    (is_short ? short_since_ : calm_since_) = now;
    was_short_ = is_short;
    // Memory is given back at once when shortage begins.
    last_give_back_ = {};
    last_change_ = now;
  }
  if (is_short) {
    if (now - last_give_back_ >= std::chrono::seconds(1)) {
      last_give_back_ = now;
      returned_bytes_ += give_back_memory(wanted_bytes);
    }
    if (now - last_change_ >= patience) {
      last_change_ = now;
      tighten_next();
    }
  } else if (!in_force_.empty() && now - std::max(calm_since_, last_change_) >= calm) {
    last_change_ = now;
    // Only rungs that have relax() are in force.
    const auto rung = in_force_.back();
    in_force_.pop_back();
    rung->relax();
    say_("memory is no longer short: " + rung->name + " as before");
  }
}

void PressureLadder::tighten_next() {
  for (const auto& rung : rungs()) {
    if (!rung->tighten || std::ranges::find(in_force_, rung) != in_force_.end()) continue;
    say_("memory is short: " + rung->name);
    rung->tighten();
    ++tightened_;
    if (rung->relax) in_force_.push_back(rung);
    return;
  }
}

}  // namespace headroom
