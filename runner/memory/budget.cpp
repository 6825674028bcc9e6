#include "memory/budget.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "memory/process_memory.hpp"
#include "memory/relief.hpp"
#include "mutex.hpp"

namespace headroom {

namespace {

constexpr int64_t mib = int64_t{1} << 20;
constexpr int64_t near_bytes = 512 * mib;  // what others may take between two looks that nobody asked for
// Half a second of waiting in all, as far ahead as Surroundings::soon_bytes looks.
constexpr int most_looks = 10;
constexpr std::chrono::milliseconds between_looks(50);
constexpr int64_t little_bytes = mib;     // of the heap: such a request may use the cushion
constexpr int64_t tiny_bytes = mib / 16;  // and such a one is refused last of all

std::atomic<int64_t> limit{0}, ceiling{INT64_MAX}, kill_line{0}, heap_refusal_count{0}, tensor_refusal_count{0};
std::atomic<int64_t> granted_since_look{0};
std::atomic<bool> heap_used_its_cushion{false};
SharedMutex look_mutex;
std::function<int64_t()> ceiling_look GUARDED_BY(look_mutex);

Mutex refusal_mutex;
Refusal refusal GUARDED_BY(refusal_mutex);

thread_local int essential = 0;  // EssentialAllocations that live on this thread

Mutex grants_mutex;
int64_t under_way GUARDED_BY(grants_mutex) = 0;  // granted to Permits that live

// How far small requests of the heap may take U: beyond the bound at most a cushion, or half of one where others have
// lowered the ceiling, and never more than half the way from the limit to the kill line.
int64_t heap_bound(int64_t bound) {
  const int64_t told = limit.load(std::memory_order_relaxed), kill = kill_line.load(std::memory_order_relaxed);
  const int64_t most = cushion_bytes(bound), free = kill > 0 ? std::max<int64_t>(kill - told, 0) / 2 : most;
  return bound + std::min(free, bound < told ? most / 2 : most);
}

// The same for tiny ones, as far as the kill line is known and others leave room: two cushions beyond the limit, and
// three quarters of the way to the kill line and to the ceiling.
int64_t tiny_bound(int64_t bound) {
  const int64_t told = limit.load(std::memory_order_relaxed), kill = kill_line.load(std::memory_order_relaxed);
  if (kill <= 0 || bound < told) return heap_bound(bound);
  const int64_t free = std::max<int64_t>(std::min(kill, ceiling.load(std::memory_order_relaxed)) - told, 0) / 4 * 3;
  return std::max(heap_bound(bound), bound + std::min(free, 2 * cushion_bytes(bound)));
}

// First what is untouched and then what is held: a page that is written in between counts twice and not never.
bool fits(int64_t bytes, int64_t bound) REQUIRES(grants_mutex) {
  const int64_t promised = promised_bytes();
  const int64_t held = held_bytes();
  note_held(held);
  // The figure at hand is at least the truth, and costs no question to the kernel.
  if (bytes <= bound - under_way - held - promised) return true;
  // It would not fit even if nothing were promised: the kernel need not be asked.
  if (bytes > bound - under_way - held) return false;
  const int64_t still_untouched = read_untouched().promised();
  return bytes <= bound - under_way - held_bytes() - still_untouched;
}

Permit grow(int64_t bytes, int64_t bound) {
  const MutexLock lock(grants_mutex);
  // The question and the sum are one step under the lock: two callers must not be granted the same bytes.
  if (!fits(bytes, bound)) return {};
  under_way += bytes;
  granted_since_look.fetch_add(bytes, std::memory_order_relaxed);
  return Permit(bytes);
}

}  // namespace

void set_memory_limit(int64_t limit_bytes) { limit = limit_bytes; }
int64_t memory_limit() { return limit; }

void set_memory_ceiling(int64_t ceiling_bytes) {
  ceiling = ceiling_bytes;
  // The ceiling is up to date from here on.
  granted_since_look.store(0, std::memory_order_relaxed);
}

void set_ceiling_look(std::function<int64_t()> look) {
  // Waits for threads inside the function that was set before: what it refers to may end after this call.
  const ExclusiveLock lock(look_mutex);
  ceiling_look = std::move(look);
}

void look_before_growing(int64_t bytes) {
  const int64_t bound = memory_bound();
  if (bound <= 0 || bytes <= 0) return;
  const int64_t unseen = granted_since_look.load(std::memory_order_relaxed) + bytes;
  // A look takes time: little growth goes without, and so does any while the bound is far off.
  if (unseen <= cushion_bytes(bound) / 2) return;
  if (bound - held_bytes() - unseen > std::max(near_bytes, bound / 4)) return;
  const SharedLock lock(look_mutex);
  for (int looks = 0; ceiling_look && looks < most_looks; ++looks) {
    const int64_t soon = ceiling_look(), left = memory_bound() - held_bytes() - promised_bytes() - bytes;
    // It fits together with what others will take, or is refused anyway: waiting changes neither.
    if (soon == 0 || left < 0 || left >= soon) return;
    std::this_thread::sleep_for(between_looks);
  }
}

int64_t memory_bound() {
  const int64_t told = limit.load(std::memory_order_relaxed);
  // At least 1, because 0 means that there is no limit.
  return told <= 0 ? 0 : std::max<int64_t>(std::min(told, ceiling.load(std::memory_order_relaxed)), 1);
}

int64_t cushion_bytes(int64_t bound_bytes) { return std::clamp(bound_bytes / 32, 3 * mib, 32 * mib); }

void set_kill_line(int64_t bytes) { kill_line = bytes; }

Permit::~Permit() {
  if (bytes_ == 0) return;
  const MutexLock lock(grants_mutex);
  under_way -= bytes_;
}

Permit try_to_grow(int64_t bytes) {
  const int64_t bound = memory_bound();
  return bound <= 0 ? Permit(0) : grow(bytes, bound - cushion_bytes(bound));
}

Permit make_room(int64_t bytes) {
  look_before_growing(bytes);
  Permit permit = try_to_grow(bytes);
  if (!permit && give_back_memory(bytes) > 0) permit = try_to_grow(bytes);
  return permit;
}

EssentialAllocations::EssentialAllocations() { ++essential; }
EssentialAllocations::~EssentialAllocations() { --essential; }
bool EssentialAllocations::under_way() { return essential > 0; }

Permit try_to_grow_heap(int64_t bytes) {
  if (bytes > little_bytes) return try_to_grow(bytes);
  if (EssentialAllocations::under_way()) return Permit(0);
  const int64_t bound = memory_bound();
  if (bound <= 0) return Permit(0);
  const int64_t most = heap_bound(bound);
  Permit permit = grow(bytes, most - cushion_bytes(bound));
  if (permit) return permit;
  heap_used_its_cushion.store(true, std::memory_order_relaxed);
  return grow(bytes, most);
}

Permit try_to_grow_heap_at_last(int64_t bytes) {
  const int64_t bound = memory_bound();
  return bytes <= tiny_bytes && bound > 0 ? grow(bytes, tiny_bound(bound)) : Permit();
}

bool take_heap_growth() {
  return heap_used_its_cushion.load(std::memory_order_relaxed) && heap_used_its_cushion.exchange(false);
}

HeapShortage heap_shortage() {
  const int64_t bound = memory_bound();
  if (bound <= 0) return {};
  const int64_t cushion = cushion_bytes(bound), used = held_bytes() + read_untouched().promised();
  const int64_t short_by = used - (heap_bound(bound) - cushion);
  return {std::max<int64_t>(short_by, 0), short_by > cushion / 4 * 3};
}

void note_heap_refusal(int64_t bytes) {
  ++heap_refusal_count;
  note_refusal(bytes);
}

int64_t heap_refusals() { return heap_refusal_count; }

void note_tensor_refusal(int64_t bytes) {
  ++tensor_refusal_count;
  note_refusal(bytes);
}

int64_t tensor_refusals() { return tensor_refusal_count; }

void note_refusal(int64_t bytes) {
  const LedgerReading ledger = read_ledger();  // asks the kernel what is untouched
  const Refusal now{bytes, promised_bytes(), ledger};
  const MutexLock lock(refusal_mutex);
  refusal = now;
}

Refusal take_refusal() {
  const MutexLock lock(refusal_mutex);
  Refusal taken = std::exchange(refusal, {});
  if (taken.bytes == 0) taken.ledger = read_ledger();
  return taken;
}

}  // namespace headroom
