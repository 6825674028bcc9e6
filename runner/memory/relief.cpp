#include "memory/relief.hpp"

#include <algorithm>

#include "mutex.hpp"

namespace headroom {

namespace {

struct Ladder {
  Mutex mutex;
  std::vector<std::shared_ptr<const Rung>> rungs GUARDED_BY(mutex);  // by order
};

Ladder& ladder() {
  static auto* made = new Ladder;
  return *made;
}

thread_local bool giving_back = false;

struct Mark {
  Mark() { giving_back = true; }
  ~Mark() { giving_back = false; }
};

}  // namespace

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

std::vector<std::shared_ptr<const Rung>> rungs() {
  Ladder& all = ladder();
  const MutexLock lock(all.mutex);
  return all.rungs;
}

int64_t give_back_memory(int64_t wanted_bytes) {
  if (giving_back) return 0;
  Ladder& all = ladder();
  if (!all.mutex.try_lock()) return 0;
  const MutexLock lock(all.mutex, std::adopt_lock);
  const Mark mark;
  int64_t returned = 0;
  for (const auto& rung : all.rungs) {
    if (returned >= wanted_bytes) break;
    if (rung->give_back) returned += rung->give_back(wanted_bytes - returned);
  }
  return returned;
}

}  // namespace headroom
