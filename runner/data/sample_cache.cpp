#include "data/sample_cache.hpp"

#include <algorithm>
#include <new>

namespace headroom {

SampleCache::SampleCache(std::chrono::milliseconds calm) : calm_(calm) {
  rung_ = add_rung({.name = "sample cache",
                    .order = 50,
                    .give_back = [this](int64_t wanted_bytes) { return give_back(wanted_bytes); },
                    .tighten = [this] { tighten(+1); },
                    .relax = [this] { tighten(-1); }});
}

void SampleCache::set_limit(uint64_t bytes) {
  // Here and below, before the lock: blocks are freed once the mutex is free, since that takes long.
  Blocks ended;
  const MutexLock lock(mutex_);
  limit_ = bytes;
  shrink_to(room(), ended);
}

SampleCache::Block* SampleCache::find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  ++hits_;
  // splice() keeps iterators valid, and by_key_ with them.
  blocks_.splice(blocks_.begin(), blocks_, found->second);
  ++found->second->references;
  return &*found->second;
}

SampleCache::Block* SampleCache::lookup(const std::string& key) {
  const MutexLock lock(mutex_);
  Block* block = find(key);
  if (block == nullptr) ++misses_;
  return block;
}

SampleCache::Block* SampleCache::acquire(const std::string& key, uint64_t bytes, CachePolicy policy) {
  Reserved reserved;
  {
    const MutexLock lock(mutex_);
    while (true) {
      if (Block* block = find(key)) return block;
      if (!being_written(key)) break;
      if (writes_one(std::this_thread::get_id())) {  // that key's writer may be waiting for this thread's block
        ++misses_;
        return nullptr;
      }
      written_.wait(mutex_);
    }
    ++misses_;
    reserved = list_new(key, bytes, policy);
  }
  return with_memory(std::move(reserved));
}

SampleCache::Block* SampleCache::reserve(const std::string& key, uint64_t bytes, CachePolicy policy) {
  Reserved reserved;
  {
    const MutexLock lock(mutex_);
    reserved = list_new(key, bytes, policy);
  }
  return with_memory(std::move(reserved));
}

SampleCache::Reserved SampleCache::list_new(const std::string& key, uint64_t bytes, CachePolicy policy) {
  Block block{key, {}, bytes, policy, std::this_thread::get_id()};
  Reserved reserved;
  try {
    // The cost of a block of almost 2^64 bytes would overflow, so its bytes are looked at first.
    if (bytes <= limit_ && make_room(block.cost(), bytes, reserved.memory, reserved.ended))
      reserved.block = &writing_.emplace_back(std::move(block));
  } catch (const std::bad_alloc&) {  // no room either
  }
  if (reserved.block == nullptr) {
    ++refused_;
  } else {
    used_ += reserved.block->cost();
  }
  return reserved;
}

// Without the mutex: mapping and unmapping memory takes long, and asking the limit for it may call give_back() here.
SampleCache::Block* SampleCache::with_memory(Reserved reserved) {
  if (reserved.block == nullptr) return nullptr;
  // First, so that the memory of evicted blocks is free for this one.
  reserved.ended.clear();
  if (!reserved.memory) reserved.memory = BlockMemory(reserved.block->bytes);
  const MutexLock lock(mutex_);
  if (reserved.memory) {
    reserved.block->memory = std::move(reserved.memory);
    return reserved.block;
  }
  used_ -= reserved.block->cost();
  writing_.erase(place_of(reserved.block));
  ++refused_;
  stop_growing();
  // Whoever waits for this key tries to write it.
  written_.notify_all();
  return nullptr;
}

void SampleCache::publish(Block* block) {
  {
    const MutexLock lock(mutex_);
    if (block->published || by_key_.contains(block->key)) return;
    const auto at = place_of(block);
    try {
      by_key_.emplace(block->key, at);
    } catch (const std::bad_alloc&) {
      return;  // not published; it ends with its writer's reference
    }
    blocks_.splice(blocks_.begin(), writing_, at);
    block->published = true;
  }
  written_.notify_all();
}

void SampleCache::release(Block* block) {
  Blocks ended;
  {
    const MutexLock lock(mutex_);
    if (--block->references > 0) return;
    if (block->published) {
      // It may have kept the cache above a limit that was lowered meanwhile.
      shrink_to(room(), ended);
      return;
    }
    used_ -= block->cost();
    ended.splice(ended.begin(), writing_, place_of(block));
  }
  written_.notify_all();
}

void SampleCache::drop(std::string_view prefix) {
  Blocks ended;
  const MutexLock lock(mutex_);
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    if (at->references > 0 || !at->key.starts_with(prefix)) {
      ++at;
      continue;
    }
    at = take_out(at, ended);
  }
}

SampleCache::Statistics SampleCache::statistics() const {
  const MutexLock lock(mutex_);
  return {blocks_.size(), used_, limit_, hits_, misses_, evictions_, refused_};
}

SampleCache::Blocks::iterator SampleCache::place_of(const Block* block) {
  return std::ranges::find_if(writing_, [&](const Block& other) { return &other == block; });
}

bool SampleCache::being_written(const std::string& key) const {
  return std::ranges::any_of(writing_, [&](const Block& block) { return block.key == key; });
}

bool SampleCache::writes_one(std::thread::id thread) const {
  return std::ranges::any_of(writing_, [&](const Block& block) { return block.writer == thread; });
}

// The limit that holds now: lower under memory pressure, and for a while after memory ran short.
uint64_t SampleCache::room() {
  if (ceiling_ != no_ceiling && Clock::now() >= ceiling_ends_) ceiling_ = no_ceiling;
  return std::min(limit_ >> tightened_, ceiling_);
}

// Evicts, as the blocks' policies allow, until `bytes` more fit; false where they do not. Keeps the memory of one
// evicted block of `reusable_bytes` for the new one: touching new pages costs more than anything else here.
bool SampleCache::make_room(uint64_t bytes, uint64_t reusable_bytes, BlockMemory& reusable, Blocks& ended) {
  const uint64_t most = room();
  if (bytes > most) return false;
  for (auto at = blocks_.end(); used_ + bytes > most && at != blocks_.begin();) {
    --at;
    if (at->references > 0 || at->policy == CachePolicy::planned) continue;
    if (at->bytes == reusable_bytes && !reusable) reusable = std::move(at->memory);
    at = evict(at, ended);
  }
  return used_ + bytes <= most;
}

// Under a lower limit the policies do not count: any block without references may go.
void SampleCache::shrink_to(uint64_t bytes, Blocks& ended) {
  for (auto at = blocks_.end(); used_ > bytes && at != blocks_.begin();) {
    --at;
    if (at->references == 0) at = evict(at, ended);
  }
}

SampleCache::Blocks::iterator SampleCache::evict(Blocks::iterator block, Blocks& ended) {
  ++evictions_;
  return take_out(block, ended);
}

SampleCache::Blocks::iterator SampleCache::take_out(Blocks::iterator block, Blocks& ended) {
  used_ -= block->cost();
  by_key_.erase(block->key);
  const auto next = std::next(block);
  ended.splice(ended.end(), blocks_, block);
  return next;
}

void SampleCache::stop_growing() {
  ceiling_ = used_;
  ceiling_ends_ = Clock::now() + calm_;
}

// Called in the middle of an allocation, perhaps of a thread that holds the mutex: so it never waits for it.
int64_t SampleCache::give_back(int64_t wanted_bytes) {
  Blocks ended;
  if (wanted_bytes <= 0 || !mutex_.try_lock()) return 0;
  const MutexLock lock(mutex_, std::adopt_lock);
  const uint64_t before = used_, wanted = static_cast<uint64_t>(wanted_bytes);
  shrink_to(before > wanted ? before - wanted : 0, ended);
  if (used_ < before) stop_growing();
  return static_cast<int64_t>(before - used_);
}

void SampleCache::tighten(int by) {
  Blocks ended;
  const MutexLock lock(mutex_);
  tightened_ = std::clamp(tightened_ + by, 0, 32);
  shrink_to(room(), ended);
}

}  // namespace headroom
