// memory/arena.hpp for a process that runs already. Small blocks come from malloc; large ones are whole pages from
// mmap, which are cut and joined freely: any run of pages can go back to the system by itself. All that is here is
// written when it is mapped, so nothing is promised (memory/untouched_pages.hpp).
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <map>
#include <new>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <unordered_map>
#include <utility>

#include "memory/arena.hpp"
#include "memory/budget.hpp"
#include "memory/process_memory.hpp"
#include "memory/steady_ns.hpp"
#include "memory/untouched_pages.hpp"
#include "mutex.hpp"

namespace headroom::arena {

namespace {

constexpr size_t least_large = size_t{64} << 10;
constexpr int64_t small_step = int64_t{1} << 20;           // by which small blocks ask the budget
constexpr int64_t kept_without_limit = int64_t{64} << 20;  // of free pages; with a limit, room decides

std::atomic<int64_t> mapped{0}, small_live{0}, small_granted{0};

size_t pages_of(size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

bool is_page(const void* data) { return reinterpret_cast<uintptr_t>(data) % page_bytes == 0; }

struct Extent {
  char* data = nullptr;  // nullptr: there is none
  size_t bytes = 0;
};

void unmap(Extent extent) {
  if (extent.data == nullptr || munmap(extent.data, extent.bytes) != 0) return;
  mapped.fetch_sub(static_cast<int64_t>(extent.bytes), std::memory_order_relaxed);
}

// Set while this thread changes a list of Extents. Where malloc has nothing for its entry, operator new asks purge()
// for memory, on the same thread: it must not lock the mutex a second time.
thread_local bool changes_lists = false;

struct Changing {
  Changing() { changes_lists = true; }
  ~Changing() { changes_lists = false; }
};

// The large blocks that are lent, and the free pages by address and by size. Free extents never touch one another.
class Extents {
 public:
  // The front of the smallest free extent that is large enough.
  Extent take(size_t bytes) {
    const MutexLock lock(mutex_);
    const Changing mark;
    const auto found = by_size_.lower_bound({bytes, nullptr});
    if (found == by_size_.end()) return {};
    const Extent whole{found->second, found->first};
    lent_.emplace(whole.data, bytes);  // throws before anything changed
    remove(whole);
    if (whole.bytes > bytes) add({whole.data + bytes, whole.bytes - bytes});
    return {whole.data, bytes};
  }

  void lend(Extent extent) {
    const MutexLock lock(mutex_);
    const Changing mark;
    lent_.emplace(extent.data, extent.bytes);
  }

  // nullptr: it is not one of these.
  Extent take_back(char* data) {
    const MutexLock lock(mutex_);
    const auto found = lent_.find(data);
    if (found == lent_.end()) return {};
    const Extent extent{data, found->second};
    lent_.erase(found);
    return extent;
  }

  void keep(Extent extent) {
    const MutexLock lock(mutex_);
    const Changing mark;
    const auto behind = by_address_.upper_bound(extent.data);
    if (behind != by_address_.begin()) {
      const auto& [data, bytes] = *std::prev(behind);
      if (data + bytes == extent.data) extent = joined({data, bytes}, extent);
    }
    if (const auto next = by_address_.find(extent.data + extent.bytes); next != by_address_.end())
      extent = joined(extent, {next->first, next->second});
    add(extent);
  }

  int64_t free_bytes() {
    const MutexLock lock(mutex_);
    return free_;
  }

  void unmap_free() {
    const MutexLock lock(mutex_);
    for (const auto& [data, bytes] : by_address_) unmap({data, bytes});
    by_address_.clear();
    by_size_.clear();
    free_ = 0;
  }

  // Around fork(): no other thread is amid a change that the child would never see the end of.
  void hold() ACQUIRE(mutex_) { mutex_.lock(); }
  void let_go() RELEASE(mutex_) { mutex_.unlock(); }

 private:
  Extent joined(Extent first, Extent second) REQUIRES(mutex_) {
    // What is being kept is in no list yet.
    remove(first);
    remove(second);
    return {first.data, first.bytes + second.bytes};
  }

  // Where malloc has nothing for a place in the lists, the pages go back.
  void add(Extent extent) REQUIRES(mutex_) {
    try {
      by_size_.emplace(extent.bytes, extent.data);
      by_address_.emplace(extent.data, extent.bytes);
      free_ += static_cast<int64_t>(extent.bytes);
    } catch (const std::bad_alloc&) {
      by_size_.erase({extent.bytes, extent.data});
      unmap(extent);
    }
  }

  void remove(Extent extent) REQUIRES(mutex_) {
    if (by_address_.erase(extent.data) == 0) return;
    by_size_.erase({extent.bytes, extent.data});
    free_ -= static_cast<int64_t>(extent.bytes);
  }

  Mutex mutex_;
  std::unordered_map<char*, size_t> lent_ GUARDED_BY(mutex_);
  std::map<char*, size_t> by_address_ GUARDED_BY(mutex_);
  std::set<std::pair<size_t, char*>> by_size_ GUARDED_BY(mutex_);
  int64_t free_ GUARDED_BY(mutex_) = 0;
};

Extents& extents() {
  static auto* made = [] {
    pthread_atfork([] { extents().hold(); }, [] { extents().let_go(); }, [] { extents().let_go(); });
    return new Extents;  // tensors are freed until the very end
  }();
  return *made;
}

void* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* allocate_large(size_t wanted, bool must_pass) {
  const size_t bytes = pages_of(wanted);
  if (const Extent free = extents().take(bytes); free.data != nullptr) return free.data;
  const Permit permit = must_pass ? Permit(0) : try_to_grow(static_cast<int64_t>(bytes));
  void* data = permit ? map(bytes) : nullptr;
  if (data == nullptr) return nullptr;
  mapped.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  const Extent extent{static_cast<char*>(data), bytes};
  // While the permit lives, as it requires.
  touch_pages(data, bytes);
  try {
    extents().lend(extent);
  } catch (const std::bad_alloc&) {
    unmap(extent);
    return nullptr;
  }
  return data;
}

// Not for every block: a question to the budget costs more than the block.
bool small_may_grow(int64_t bytes) {
  const int64_t live = small_live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (live <= small_granted.load(std::memory_order_relaxed)) return true;
  if (const Permit permit = try_to_grow(small_step)) {
    small_granted.fetch_add(small_step, std::memory_order_relaxed);
    return true;
  }
  small_live.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void* allocate_small(size_t bytes, bool must_pass) {
  const auto asked = static_cast<int64_t>(bytes);
  if (must_pass) {
    small_live.fetch_add(asked, std::memory_order_relaxed);
  } else if (!small_may_grow(asked)) {
    return nullptr;
  }
  void* data = nullptr;
  if (posix_memalign(&data, alignment, bytes) != 0) {
    small_live.fetch_sub(asked, std::memory_order_relaxed);
    return nullptr;
  }
  const auto usable = static_cast<int64_t>(malloc_usable_size(data));
  small_live.fetch_add(usable - asked, std::memory_order_relaxed);
  mapped.fetch_add(usable, std::memory_order_relaxed);
  return data;
}

// What the process holds, by an answer of the kernel's that is at most 10 ms old and what this arena mapped and
// unmapped since. A question for each block would take longer than to fill 64 KiB.
int64_t held_lately() {
  static std::atomic<int64_t> of_others{0}, asked_again_at{0};
  const int64_t now = steady_ns();
  if (now >= asked_again_at.load(std::memory_order_relaxed)) {
    of_others.store(held_bytes() - mapped_bytes(), std::memory_order_relaxed);
    asked_again_at.store(now + 10'000'000, std::memory_order_relaxed);
  }
  return of_others.load(std::memory_order_relaxed) + mapped_bytes();
}

// Nobody stops malloc: what is free here is kept for the next tensor only where others have room to grow.
bool may_keep(Extent extent) {
  const int64_t bound = memory_bound();
  if (bound <= 0) return extents().free_bytes() + static_cast<int64_t>(extent.bytes) <= kept_without_limit;
  return held_lately() <= bound - bound / 4;
}

}  // namespace

void* allocate(size_t bytes, bool must_pass) try {
  return bytes >= least_large ? allocate_large(bytes, must_pass) : allocate_small(bytes, must_pass);
} catch (const std::bad_alloc&) {
  return nullptr;
}

size_t occupied_bytes(const void* data, size_t bytes) {
  return bytes >= least_large ? pages_of(bytes) : malloc_usable_size(const_cast<void*>(data));
}

void release(void* data) {
  const Extent extent = is_page(data) ? extents().take_back(static_cast<char*>(data)) : Extent{};
  if (extent.data == nullptr) {
    const auto usable = static_cast<int64_t>(malloc_usable_size(data));
    small_live.fetch_sub(usable, std::memory_order_relaxed);
    mapped.fetch_sub(usable, std::memory_order_relaxed);
    std::free(data);
  } else if (may_keep(extent)) {
    extents().keep(extent);
  } else {
    unmap(extent);
  }
}

int64_t purge() {
  if (changes_lists) return 0;
  const int64_t before = mapped_bytes();
  extents().unmap_free();
  return before - mapped_bytes();
}

void purge_heap() {
  malloc_trim(0);
  // What was granted beyond what lives may have gone.
  small_granted = small_live.load();
}

int64_t mapped_bytes() { return mapped.load(std::memory_order_relaxed); }

void bind_heap(int64_t (*)(int64_t)) {}

int64_t take_refused_heap_bytes() { return 0; }

}  // namespace headroom::arena
