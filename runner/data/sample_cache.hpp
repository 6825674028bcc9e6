// The sample cache (`data.cache_size`): blocks of bytes under one limit, looked up by key, shared by all threads,
// handed out as counted references. A block is immutable once it is published. Plugins reach it as headroom.cache/1;
// the host keeps whole samples in it (cache_session.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "data/block_memory.hpp"
#include "memory/relief.hpp"
#include "mutex.hpp"

namespace headroom {

// Which blocks may be evicted for a new one. When memory is short, any block without references may.
enum class CachePolicy {
  lru,      // the least recently used first
  planned,  // none: what is there stays. The best policy where every block is used once an epoch
            // (docs/sample_cache.md).
};

// All members [any].
class SampleCache {
 public:
  struct Block {
    std::string key;
    BlockMemory memory;
    uint64_t bytes = 0;
    CachePolicy policy = CachePolicy::lru;
    std::thread::id writer{};
    uint64_t references = 1;
    bool published = false;
    uint64_t cost() const { return bytes + sizeof(Block) + key.size(); }  // what it takes of the limit
  };

  // After memory ran short, the cache does not grow before `calm` has passed.
  explicit SampleCache(std::chrono::milliseconds calm = std::chrono::seconds(30));

  // A lower limit evicts at once. 0: nothing is kept.
  void set_limit(uint64_t bytes);

  // Every block that one of these returns is referenced for the caller, who calls release() once.
  // The published block of `key`; NULL on a miss.
  Block* lookup(const std::string& key);
  // A new block, which only the caller sees and writes until publish(); NULL where there is no room.
  Block* reserve(const std::string& key, uint64_t bytes, CachePolicy policy);
  // lookup(), or else reserve(): the caller writes the block where it is not `published`. Waits while another thread
  // writes that key. A thread that has an unpublished block itself does not wait, so that two cannot wait for each
  // other: it gets NULL, as where there is no room.
  Block* acquire(const std::string& key, uint64_t bytes, CachePolicy policy);
  // Makes a written block visible to all; the caller keeps its reference. Where another block of that key is published
  // already, this one is freed by its release().
  void publish(Block* block);
  void release(Block* block);

  // Frees published blocks whose key begins with `prefix` and that nobody references.
  void drop(std::string_view prefix);

  struct Statistics {
    uint64_t items = 0, used_bytes = 0, limit_bytes = 0;  // now
    uint64_t hits = 0, misses = 0, evictions = 0;         // since the start
    uint64_t refused = 0;  // blocks that found no room, under this limit or the process's
    double hit_rate() const {
      return hits + misses == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
    }
  };
  Statistics statistics() const;

 private:
  using Blocks = std::list<Block>;  // a parameter `ended` takes blocks to free once the mutex is free
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t no_ceiling = std::numeric_limits<uint64_t>::max();

  // A block that counts against the limit and has no memory yet. That is made without the mutex: it may take long.
  struct Reserved {
    Block* block = nullptr;  // NULL: there is no room
    BlockMemory memory;      // reused of an evicted block of the same size
    Blocks ended;
  };

  Block* find(const std::string& key) REQUIRES(mutex_);
  Reserved list_new(const std::string& key, uint64_t bytes, CachePolicy policy) REQUIRES(mutex_);
  Block* with_memory(Reserved reserved) EXCLUDES(mutex_);
  Blocks::iterator place_of(const Block* block) REQUIRES(mutex_);
  bool being_written(const std::string& key) const REQUIRES(mutex_);
  bool writes_one(std::thread::id thread) const REQUIRES(mutex_);
  uint64_t room() REQUIRES(mutex_);
  bool make_room(uint64_t bytes, uint64_t reusable_bytes, BlockMemory& reusable, Blocks& ended) REQUIRES(mutex_);
  void shrink_to(uint64_t bytes, Blocks& ended) REQUIRES(mutex_);
  Blocks::iterator evict(Blocks::iterator block, Blocks& ended) REQUIRES(mutex_);
  Blocks::iterator take_out(Blocks::iterator block, Blocks& ended) REQUIRES(mutex_);
  void stop_growing() REQUIRES(mutex_);
  int64_t give_back(int64_t wanted_bytes);
  void tighten(int by);

  const std::chrono::milliseconds calm_;
  // by_key_ has exactly the blocks of blocks_; used_ is the cost of all blocks of both lists. A block with references,
  // or in writing_, is never evicted. written_ is notified when a block leaves writing_.
  mutable Mutex mutex_;
  Condition written_;
  Blocks blocks_ GUARDED_BY(mutex_);   // published; the most recently used first
  Blocks writing_ GUARDED_BY(mutex_);  // not published; few, so it is searched
  std::unordered_map<std::string, Blocks::iterator> by_key_ GUARDED_BY(mutex_);
  uint64_t limit_ GUARDED_BY(mutex_) = 0, used_ GUARDED_BY(mutex_) = 0;
  uint64_t ceiling_ GUARDED_BY(mutex_) = no_ceiling;  // used_ when memory last ran short; holds until ceiling_ends_
  Clock::time_point ceiling_ends_ GUARDED_BY(mutex_){};
  int tightened_ GUARDED_BY(mutex_) = 0;  // how often memory pressure has halved the limit
  uint64_t hits_ GUARDED_BY(mutex_) = 0, misses_ GUARDED_BY(mutex_) = 0;
  uint64_t evictions_ GUARDED_BY(mutex_) = 0, refused_ GUARDED_BY(mutex_) = 0;
  RungRegistration rung_;
};

}  // namespace headroom
