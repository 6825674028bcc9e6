// The owner of every tensor allocation: a hash table from address to (owner, bytes), in shards with a lock each.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "memory/ledger.hpp"

namespace headroom {

class AllocationTable {
 public:
  struct Entry {
    uintptr_t address = 0;  // 0: free
    uint64_t bytes : 56 = 0;
    uint64_t owner : 8 = 0;
  };

  AllocationTable();
  // [any] std::bad_alloc when the table must grow and cannot; nothing has changed then.
  void insert(const void* data, uint64_t bytes, Owner owner);
  // [any] The entry of `data`, taken out. REQUIRES: it was inserted.
  Entry take(const void* data) noexcept;

  // Around fork(): no other thread is amid a change that the child would never see the end of.
  void hold() noexcept;
  void let_go() noexcept;

 private:
  // Open addressing with linear probing; removal shifts what follows back, so that there are no tombstones.
  struct alignas(64) Shard {
    std::atomic_flag busy;
    size_t used = 0;
    std::vector<Entry> slots;
    size_t home(uintptr_t address) const;
    void grow();
  };
  Shard& shard_of(uintptr_t address);

  static constexpr size_t shard_count = 16;
  std::array<Shard, shard_count> shards_;
};

}  // namespace headroom
