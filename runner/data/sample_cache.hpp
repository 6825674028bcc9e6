// The sample cache (`data.cache_size`): immutable blocks under one byte limit, shared by all threads, handed out as
// counted references. Plugins reach it as headroom.cache/1, the host keeps whole samples in it (cache_session.hpp).
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

// What goes for a new block where there is no room. Under a memory shortage anything goes, whatever its policy.
enum class CachePolicy {
  lru,      // what was used least recently
  planned,  // nothing: what is there stays. The best there is where everything is used once an epoch (docs/data.md).
};

// All members from any thread.
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
    uint64_t cost() const { return bytes + sizeof(Block) + key.size(); }  // of the limit
  };

  // Where memory ran short, the cache does not grow again before `calm` has passed.
  explicit SampleCache(std::chrono::milliseconds calm = std::chrono::seconds(30));

  void set_limit(uint64_t bytes);

  // A published block, referenced until release(); NULL on a miss.
  Block* lookup(const std::string& key);
  // A new block to write, referenced by its writer alone until publish(); NULL where there is no room.
  Block* reserve(const std::string& key, uint64_t bytes, CachePolicy policy);
  // The two in one: a published block, or a new one (published == false) that the caller writes; waits while another
  // thread writes that key. A thread that has an unpublished block itself never waits: NULL, as where there is no room.
  Block* acquire(const std::string& key, uint64_t bytes, CachePolicy policy);
  // Once written; the reference stays. Where another thread published that key first, this block ends with its
  // reference.
  void publish(Block* block);
  void release(Block* block);

  // Drops what begins with `prefix` and nobody holds.
  void drop(std::string_view prefix);

  struct Statistics {
    uint64_t items = 0, used_bytes = 0, limit_bytes = 0;  // now
    uint64_t hits = 0, misses = 0, evictions = 0;         // since the start
    uint64_t refused = 0;  // blocks that found no room, be it of the limit or of the memory limit
    double hit_rate() const {
      return hits + misses == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
    }
  };
  Statistics statistics() const;

 private:
  using Blocks = std::list<Block>;  // `ended`: those whose memory the caller frees once it has let go of the mutex
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t no_ceiling = std::numeric_limits<uint64_t>::max();

  // A block that is listed and has no memory yet: others wait for it, and together they stay within the limit.
  struct Reserved {
    Block* block = nullptr;  // there is no room
    BlockMemory memory;      // of a block that ended, where one was as large
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
  mutable Mutex mutex_;
  Condition written_;
  Blocks blocks_ GUARDED_BY(mutex_);   // published; used last: first
  Blocks writing_ GUARDED_BY(mutex_);  // by few threads
  std::unordered_map<std::string, Blocks::iterator> by_key_ GUARDED_BY(mutex_);
  uint64_t limit_ GUARDED_BY(mutex_) = 0, used_ GUARDED_BY(mutex_) = 0;
  uint64_t ceiling_ GUARDED_BY(mutex_) = no_ceiling;  // what memory had room for when it last ran short
  Clock::time_point ceiling_ends_ GUARDED_BY(mutex_){};
  int tightened_ GUARDED_BY(mutex_) = 0;  // times that pressure halved the limit
  uint64_t hits_ GUARDED_BY(mutex_) = 0, misses_ GUARDED_BY(mutex_) = 0;
  uint64_t evictions_ GUARDED_BY(mutex_) = 0, refused_ GUARDED_BY(mutex_) = 0;
  RungRegistration rung_;
};

}  // namespace headroom
