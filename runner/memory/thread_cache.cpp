#include "memory/thread_cache.hpp"

#if !HEADROOM_SYSTEM_ALLOCATOR

#include <jemalloc/jemalloc.h>

#include "memory/relief.hpp"

namespace headroom::arena {

namespace {

// jemalloc's own tcache.flush is of no use: it makes the cache anew at its next use, and aborts where there is no
// memory for it then.
class ThreadCache {
 public:
  ~ThreadCache() {
    drop();
    alive = false;
  }
  void drop() {
    if (exists_) mallctl("tcache.destroy", nullptr, nullptr, &index_, sizeof index_);
    exists_ = false;
    existing = nullptr;
    uses_until_made_ = uses_without;
  }
  int flag() {
    if (!exists_ && --uses_until_made_ <= 0) make();
    return exists_ ? static_cast<int>(MALLOCX_TCACHE(index_)) : MALLOCX_TCACHE_NONE;
  }
  static thread_local bool alive;
  static thread_local ThreadCache* existing;  // nullptr: this thread has none (yet)

 private:
  static constexpr int uses_without = 256;  // after it was dropped, or could not be made

  void make() {
    size_t size = sizeof index_;
    exists_ = mallctl("tcache.create", &index_, &size, nullptr, 0) == 0;
    if (exists_) existing = this;
    uses_until_made_ = uses_without;
  }

  bool exists_ = false;
  unsigned index_ = 0;
  int uses_until_made_ = 0;
};
thread_local bool ThreadCache::alive = true;
thread_local ThreadCache* ThreadCache::existing = nullptr;

ThreadCache& thread_cache() {
  static thread_local ThreadCache cache;
  return cache;
}

}  // namespace

// Tensors may be freed while a thread ends, after its cache has gone, and in the middle of malloc.
int thread_cache_flag() {
  const bool makes_one = ThreadCache::existing == nullptr;
  if (!ThreadCache::alive || (makes_one && inside_malloc())) return MALLOCX_TCACHE_NONE;
  return thread_cache().flag();
}

void drop_thread_cache() {
  if (ThreadCache::existing != nullptr) ThreadCache::existing->drop();
}

}  // namespace headroom::arena

#endif
