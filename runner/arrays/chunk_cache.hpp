// A cache of decoded chunks, for all datasets of a session, under one byte limit. Eviction is CLOCK, an approximation
// of LRU. A chunk is decoded by one thread; others that want it wait, and reads of other chunks go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

#include "memory/relief.hpp"
#include "mutex.hpp"

namespace headroom {

struct ChunkKey {
  uint64_t array = 0;  // ArrayPlan::id
  uint64_t cell = 0;   // of its grid
  bool operator==(const ChunkKey&) const = default;
};

// The bytes of one chunk, on the ledger as cache. Immutable once it is handed out, and valid for its holders even after
// it was evicted.
class DecodedChunk {
 public:
  DecodedChunk(std::unique_ptr<std::byte[]> bytes, uint64_t size);
  ~DecodedChunk();
  DecodedChunk(const DecodedChunk&) = delete;
  DecodedChunk& operator=(const DecodedChunk&) = delete;
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  uint64_t size_;
};

// All members from any thread.
class ChunkCache {
 public:
  using Decode = std::function<void(std::span<std::byte>)>;

  ChunkCache();

  // The chunk `key`, of `bytes` bytes: from the cache, or made by `decode`, which fills the memory it is given. It is
  // kept where the limit allows. Waits where another thread decodes the same chunk. What `decode` throws is thrown here
  // and nothing is kept; std::bad_alloc. `decode` runs without the cache's mutex.
  std::shared_ptr<const DecodedChunk> get(const ChunkKey& key, uint64_t bytes, const Decode& decode);

  // A lower limit evicts at once. 0: nothing is kept.
  void set_limit(uint64_t bytes);
  uint64_t limit() const;
  // libhdf5's own chunk caches take `bytes` more of the limit; negative: give them back.
  void set_aside(int64_t bytes);
  bool is_overdrawn() const;  // whether they take more than the whole limit

  struct Statistics {
    uint64_t hits = 0, misses = 0, kept_bytes = 0;  // since the start; now
  };
  Statistics statistics() const;

 private:
  // Shared by the thread that decodes a chunk and those that wait for it, since the entry may go before these look.
  struct Decoding {
    bool ended = false;
    std::shared_ptr<DecodedChunk> chunk = nullptr;  // null until then, and after a failure
  };
  struct Entry {
    ChunkKey key;
    uint64_t size = 0;                    // what it takes of the limit; 0: too large to be kept
    std::shared_ptr<DecodedChunk> chunk;  // null while a thread decodes it
    std::shared_ptr<Decoding> decoding;   // null afterwards
    bool used = false;                    // since it was last moved to the front
  };
  struct Hash {
    size_t operator()(const ChunkKey& key) const {
      return std::hash<uint64_t>()(key.array * 0x9E3779B97F4A7C15u ^ key.cell * 0xC2B2AE3D27D4EB4Fu);
    }
  };
  using Entries = std::list<Entry>;

  void wait_for(const Decoding& decoding);
  uint64_t room() const REQUIRES(mutex_);  // the limit that holds now
  std::unique_ptr<std::byte[]> make_room(uint64_t most_kept, uint64_t reusable) REQUIRES(mutex_);
  Entries::iterator drop(Entries::iterator entry) REQUIRES(mutex_);
  int64_t give_back(int64_t wanted_bytes);

  // entries_ and by_key_ hold the same chunks; kept_ is the sum of their sizes. An entry whose chunk is null belongs to
  // the thread that decodes it: nobody else erases it. decoded_ is notified when a Decoding has ended; its members are
  // read and written under mutex_.
  mutable Mutex mutex_;
  Condition decoded_;
  Entries entries_ GUARDED_BY(mutex_);  // the newest first
  std::unordered_map<ChunkKey, Entries::iterator, Hash> by_key_ GUARDED_BY(mutex_);
  uint64_t limit_ GUARDED_BY(mutex_) = 32 << 20, aside_ GUARDED_BY(mutex_) = 0, kept_ GUARDED_BY(mutex_) = 0;
  uint64_t hits_ GUARDED_BY(mutex_) = 0, misses_ GUARDED_BY(mutex_) = 0;
  int tightened_ GUARDED_BY(mutex_) = 0;  // times that pressure halved the limit
  RungRegistration rung_;
};

}  // namespace headroom
