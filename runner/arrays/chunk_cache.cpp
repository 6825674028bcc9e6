#include "arrays/chunk_cache.hpp"

#include <algorithm>

#include "arrays/read_hooks.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"

namespace headroom {

namespace {

// Gets the memory of a chunk that is destroyed on this thread, for the next chunk: touching new pages costs more than
// decoding.
struct ReusedMemory {
  uint64_t size = 0;
  std::unique_ptr<std::byte[]> memory = nullptr;
};
thread_local ReusedMemory* reused_here = nullptr;

// Every lookup takes this mutex, for a fraction of a microsecond. Sleeping and being woken would take ten times as
// long, so spin first.
void lock_at_once(Mutex& mutex) ACQUIRE(mutex) {
  constexpr int tries = 200;
  for (int i = 0; i < tries; ++i) {
    if (mutex.try_lock()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  mutex.lock();
}

}  // namespace

DecodedChunk::DecodedChunk(std::unique_ptr<std::byte[]> bytes, uint64_t size) : bytes_(std::move(bytes)), size_(size) {
  account(Owner::cache, static_cast<int64_t>(size_));
}

DecodedChunk::~DecodedChunk() {
  account(Owner::cache, -static_cast<int64_t>(size_));
  if (reused_here != nullptr && reused_here->size == size_ && reused_here->memory == nullptr)
    reused_here->memory = std::move(bytes_);
}

ChunkCache::ChunkCache() {
  rung_ = add_rung({.name = "decoded chunks",
                    .order = 100,
                    .give_back = [this](int64_t wanted_bytes) { return give_back(wanted_bytes); },
                    .tighten =
                        [this] {
                          const MutexLock lock(mutex_);
                          // A shift by 64 would be undefined, and after 32 halvings no chunk fits anyway.
                          tightened_ = std::min(tightened_ + 1, 32);
                          make_room(room(), 0);
                        },
                    .relax =
                        [this] {
                          const MutexLock lock(mutex_);
                          tightened_ = std::max(tightened_ - 1, 0);
                        }});
}

uint64_t ChunkCache::room() const { return (limit_ > aside_ ? limit_ - aside_ : 0) >> tightened_; }

ChunkCache::Entries::iterator ChunkCache::drop(Entries::iterator entry) {
  kept_ -= entry->size;
  by_key_.erase(entry->key);
  return entries_.erase(entry);
}

// CLOCK: from the oldest entry on, an entry that was used is marked unused and moved to the front, another is dropped,
// until at most `most_kept` bytes are left. A hit then only sets a mark, where LRU would move the entry. Entries that
// are being decoded stay. Returns the memory of a dropped chunk of `reusable` bytes, if there was one.
std::unique_ptr<std::byte[]> ChunkCache::make_room(uint64_t most_kept, uint64_t reusable) {
  ReusedMemory reused{reusable};
  reused_here = &reused;
  for (auto at = entries_.end(); kept_ > most_kept && at != entries_.begin();) {
    --at;
    if (at->chunk == nullptr) continue;
    if (at->used) {
      at->used = false;
      entries_.splice(entries_.begin(), entries_, at++);
    } else {
      at = drop(at);
    }
  }
  reused_here = nullptr;
  return std::move(reused.memory);
}

// The thread that decodes the chunk may need this thread's turn, and takes the mutex: so pause, and without the mutex.
void ChunkCache::wait_for(const Decoding& decoding) {
  const Pause pause(PauseFor::another_thread);
  const MutexLock lock(mutex_);
  while (!decoding.ended) decoded_.wait(mutex_);
}

std::shared_ptr<const DecodedChunk> ChunkCache::get(const ChunkKey& key, uint64_t bytes, const Decode& decode) {
  lock_at_once(mutex_);
  MutexLock lock(mutex_, std::adopt_lock);
  for (auto found = by_key_.find(key); found != by_key_.end(); found = by_key_.find(key)) {
    Entry& entry = *found->second;
    entry.used = true;
    if (entry.chunk != nullptr) {
      ++hits_;
      return entry.chunk;
    }
    const std::shared_ptr<const Decoding> decoding = entry.decoding;
    lock.unlock();
    wait_for(*decoding);
    lock.lock();
    if (decoding->chunk != nullptr) {
      ++hits_;
      return decoding->chunk;
    }
  }
  ++misses_;
  const uint64_t counted = bytes <= room() ? bytes : 0;  // a chunk that cannot fit is not kept, and evicts nothing
  std::unique_ptr<std::byte[]> memory;
  if (counted > 0) memory = make_room(room() - counted, bytes);
  // Listed before it is decoded, so that others who want the chunk wait for this entry.
  const auto decoding = std::make_shared<Decoding>();
  entries_.push_front({.key = key, .size = counted, .chunk = nullptr, .decoding = decoding});
  const auto entry = entries_.begin();
  by_key_.emplace(key, entry);
  kept_ += counted;
  lock.unlock();

  std::shared_ptr<DecodedChunk> chunk;
  bool keep = false;
  try {
    // Malloc grants small requests beyond the limit, too. A chunk that is kept only to save time needs room below it;
    // this asks whether there is any, and malloc takes it.
    keep = counted > 0 && (memory != nullptr || headroom::make_room(static_cast<int64_t>(bytes)));
    if (memory == nullptr) memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    decode({memory.get(), bytes});
    chunk = std::make_shared<DecodedChunk>(std::move(memory), bytes);
  } catch (...) {
    lock.lock();
    decoding->ended = true;
    drop(entry);
    decoded_.notify_all();  // one of those that wait decodes it
    throw;
  }
  lock.lock();
  decoding->ended = true;
  decoding->chunk = entry->chunk = chunk;
  entry->decoding = nullptr;
  if (!keep) drop(entry);
  decoded_.notify_all();
  make_room(room(), 0);  // the limit may have shrunk meanwhile
  return chunk;
}

void ChunkCache::set_limit(uint64_t bytes) {
  const MutexLock lock(mutex_);
  limit_ = bytes;
  make_room(room(), 0);
}

uint64_t ChunkCache::limit() const {
  const MutexLock lock(mutex_);
  return limit_;
}

void ChunkCache::set_aside(int64_t bytes) {
  const MutexLock lock(mutex_);
  // Unsigned arithmetic wraps, so a negative value subtracts.
  aside_ += static_cast<uint64_t>(bytes);
  make_room(room(), 0);
}

bool ChunkCache::is_overdrawn() const {
  const MutexLock lock(mutex_);
  return aside_ > limit_;
}

ChunkCache::Statistics ChunkCache::statistics() const {
  const MutexLock lock(mutex_);
  return {hits_, misses_, kept_};
}

// Called in the middle of an allocation, perhaps of a thread that holds the mutex: so it never waits for it.
int64_t ChunkCache::give_back(int64_t wanted_bytes) {
  if (wanted_bytes <= 0 || !mutex_.try_lock()) return 0;
  const MutexLock lock(mutex_, std::adopt_lock);
  const uint64_t before = kept_, wanted = static_cast<uint64_t>(wanted_bytes);
  make_room(before > wanted ? before - wanted : 0, 0);
  return static_cast<int64_t>(before - kept_);
}

}  // namespace headroom
