#include "memory/allocation_table.hpp"

#include <thread>

#include "memory/relief.hpp"

namespace headroom {

namespace {

constexpr size_t first_slots = 1024;

// Fibonacci hashing; addresses are multiples of 64.
uint64_t mixed(uintptr_t address) { return (address >> 6) * 0x9E3779B97F4A7C15ull; }

// By spinning: but for grow(), a shard is busy for a few memory accesses only.
void acquire(std::atomic_flag& busy) {
  while (busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
}

class Hold {
 public:
  explicit Hold(std::atomic_flag& busy) : busy_(busy) { acquire(busy_); }
  ~Hold() { busy_.clear(std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::atomic_flag& busy_;
};

}  // namespace

AllocationTable::AllocationTable() {
  for (Shard& shard : shards_) shard.slots.resize(first_slots);
}

// The top four bits choose one of the 16 shards. home() takes other bits, so that a shard's entries spread over it.
AllocationTable::Shard& AllocationTable::shard_of(uintptr_t address) { return shards_[mixed(address) >> 60]; }

size_t AllocationTable::Shard::home(uintptr_t address) const { return (mixed(address) >> 16) & (slots.size() - 1); }

void AllocationTable::Shard::grow() {
  const ThreadMark while_locked = give_nothing_back();
  // Allocates before it changes anything: after a std::bad_alloc the table is as it was.
  std::vector<Entry> larger(2 * slots.size());
  slots.swap(larger);
  for (const Entry& entry : larger) {
    if (entry.address == 0) continue;
    size_t i = home(entry.address);
    while (slots[i].address != 0) i = (i + 1) & (slots.size() - 1);
    slots[i] = entry;
  }
}

void AllocationTable::insert(const void* data, uint64_t bytes, Owner owner) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  Shard& shard = shard_of(address);
  const Hold hold(shard.busy);
  // At most half full: probing stays short, and the walks in take() always meet a free slot.
  if (2 * (shard.used + 1) > shard.slots.size()) shard.grow();
  size_t i = shard.home(address);
  while (shard.slots[i].address != 0) i = (i + 1) & (shard.slots.size() - 1);
  shard.slots[i] = {address, bytes, static_cast<uint64_t>(owner)};
  ++shard.used;
}

AllocationTable::Entry AllocationTable::take(const void* data) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(data);
  Shard& shard = shard_of(address);
  const Hold hold(shard.busy);
  const size_t mask = shard.slots.size() - 1;
  size_t hole = shard.home(address);
  while (shard.slots[hole].address != address) hole = (hole + 1) & mask;
  const Entry taken = shard.slots[hole];
  --shard.used;
  for (size_t i = (hole + 1) & mask; shard.slots[i].address != 0; i = (i + 1) & mask) {
    // An entry may fill the hole unless its home lies cyclically within (hole, i].
    if (((i - shard.home(shard.slots[i].address)) & mask) < ((i - hole) & mask)) continue;
    shard.slots[hole] = shard.slots[i];
    hole = i;
  }
  shard.slots[hole] = {};
  return taken;
}

void AllocationTable::hold() noexcept {
  for (Shard& shard : shards_) acquire(shard.busy);
}

void AllocationTable::let_go() noexcept {
  for (Shard& shard : shards_) shard.busy.clear(std::memory_order_release);
}

}  // namespace headroom
