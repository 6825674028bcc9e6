// headroom.cache/1: least recently used blocks go first; a block in use never moves and never goes.

#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "data/arrays.hpp"
#include "data/services.hpp"

namespace headroom {

namespace {

constexpr std::align_val_t alignment{64};

struct FreeAligned {
  void operator()(std::byte* data) const { ::operator delete[](data, alignment); }
};

struct Block {
  std::string key;
  std::unique_ptr<std::byte[], FreeAligned> data;
  uint64_t bytes = 0;
  uint64_t references = 0;
  bool published = false;

  uint64_t cost() const { return bytes + sizeof(Block) + key.size(); }
};

// All members from any thread.
class Cache {
 public:
  void set_limit(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    make_room(0);
  }

  Block* lookup(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    blocks_.splice(blocks_.begin(), blocks_, found->second);
    ++found->second->references;
    return &*found->second;
  }

  Block* reserve(const std::string& key, uint64_t bytes) {
    Block block{key, {}, bytes, 1, false};
    {
      const std::lock_guard lock(mutex_);
      if (bytes > limit_ || block.cost() > limit_ || !make_room(block.cost())) return nullptr;
      used_ += block.cost();  // before the memory is there: concurrent reservations stay within the limit
    }
    block.data.reset(new (alignment, std::nothrow) std::byte[bytes]);
    const std::lock_guard lock(mutex_);
    if (block.data != nullptr) return &reserved_.emplace_back(std::move(block));
    used_ -= block.cost();
    return nullptr;
  }

  void publish(Block* block) {
    const std::lock_guard lock(mutex_);
    if (block->published || by_key_.contains(block->key))
      return;  // another reader was first: this copy ends with its reference
    const auto at = place_of(block);
    blocks_.splice(blocks_.begin(), reserved_, at);
    by_key_.emplace(block->key, at);
    block->published = true;
  }

  void release(Block* block) {
    const std::lock_guard lock(mutex_);
    if (--block->references > 0) return;
    if (block->published) {
      make_room(0);
    } else {
      used_ -= block->cost();
      reserved_.erase(place_of(block));
    }
  }

 private:
  std::list<Block>::iterator place_of(const Block* block) {
    auto at = reserved_.begin();
    while (&*at != block) ++at;
    return at;
  }

  // Drops blocks nobody holds until `bytes` more fit.
  bool make_room(uint64_t bytes) {
    for (auto at = blocks_.end(); used_ + bytes > limit_ && at != blocks_.begin();) {
      --at;
      if (at->references > 0) continue;
      used_ -= at->cost();
      by_key_.erase(at->key);
      at = blocks_.erase(at);
    }
    return used_ + bytes <= limit_;
  }

  std::mutex mutex_;
  uint64_t limit_ = 0, used_ = 0;
  std::list<Block> blocks_;    // published; used last: first
  std::list<Block> reserved_;  // being written, by few threads
  std::unordered_map<std::string, std::list<Block>::iterator> by_key_;
};

Cache& cache() {
  static auto* cache = new Cache;  // plugins may release blocks until the process ends
  return *cache;
}

void hand_out(Block& block, hr_cache_block& out) {
  out = {sizeof(hr_cache_block), 0, block.data.get(), block.bytes, &block};
}

hr_status lookup(const hr_host*, const char* key, hr_cache_block* out, hr_error* error) HR_NOEXCEPT {
  bool hit = false;
  const hr_status status = sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    Block* block = cache().lookup(text(key, "key"));
    hit = block != nullptr;
    if (hit) hand_out(*block, result);
  });
  return status == HR_OK && !hit ? sdk::fail(error, HR_NOT_FOUND, "not in the cache") : status;
}

hr_status reserve(const hr_host*, const char* key, uint64_t bytes, hr_cache_block* out, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    Block* block = cache().reserve(text(key, "key"), bytes);
    if (block == nullptr)
      throw sdk::Error(HR_OUT_OF_MEMORY, std::to_string(bytes) + " bytes do not fit into the cache (data.cache_size)");
    hand_out(*block, result);
  });
}

void publish(const hr_host*, hr_cache_block* block) HR_NOEXCEPT {
  if (block != nullptr && block->reference != nullptr) cache().publish(static_cast<Block*>(block->reference));
}

void release(const hr_host*, hr_cache_block* block) HR_NOEXCEPT {
  if (block == nullptr || block->reference == nullptr) return;
  cache().release(static_cast<Block*>(block->reference));
  *block = {sizeof(hr_cache_block), 0, nullptr, 0, nullptr};
}

}  // namespace

const hr_cache& cache_service() {
  static const hr_cache table{sizeof(hr_cache), 0, lookup, reserve, publish, release};
  return table;
}

void set_cache_limit(int64_t bytes) { cache().set_limit(bytes > 0 ? static_cast<uint64_t>(bytes) : 0); }

}  // namespace headroom
