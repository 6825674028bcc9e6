#include "memory/arena.hpp"

#include <atomic>

#include "memory/budget.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom::arena {

namespace {

std::atomic<int64_t> mapped{0}, used_peak{0};

int64_t used_bytes() { return mapped.load(std::memory_order_relaxed) - spare_bytes(); }

void note_mapped(int64_t bytes) {
  mapped.fetch_add(bytes, std::memory_order_relaxed);
  int64_t seen = used_peak.load(std::memory_order_relaxed);
  while (seen < used_bytes() && !used_peak.compare_exchange_weak(seen, used_bytes(), std::memory_order_relaxed)) {
  }
}

}  // namespace

int64_t mapped_bytes() { return mapped.load(std::memory_order_relaxed); }

int64_t WithoutFreeLists::now_bytes() const { return used_bytes(); }
int64_t WithoutFreeLists::peak_bytes() const { return std::max(used_peak.load(), used_bytes()); }

}  // namespace headroom::arena

#if HEADROOM_SYSTEM_ALLOCATOR

#include <cstdlib>
#include <malloc.h>

namespace headroom::arena {

void* allocate(size_t bytes, bool must_pass) {
  void* data = nullptr;
  const Permit permit = must_pass ? Permit(0) : try_to_grow(static_cast<int64_t>(bytes));
  if (!permit || posix_memalign(&data, alignment, bytes) != 0) return nullptr;
  // Written while the permit lives, as Permit requires: this allocator does not report its pages as untouched.
  touch_pages(data, bytes);
  note_mapped(static_cast<int64_t>(malloc_usable_size(data)));
  return data;
}

size_t occupied_bytes(const void* data, size_t) { return malloc_usable_size(const_cast<void*>(data)); }

void release(void* data) {
  mapped.fetch_sub(static_cast<int64_t>(malloc_usable_size(data)), std::memory_order_relaxed);
  std::free(data);
}

void bind_heap(int64_t (*)(int64_t)) {}

WithoutFreeLists::WithoutFreeLists() { used_peak = used_bytes(); }
WithoutFreeLists::~WithoutFreeLists() = default;
int64_t take_refused_heap_bytes() { return 0; }

int64_t purge() { return 0; }
void purge_heap() { malloc_trim(0); }

}  // namespace headroom::arena

#else

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <jemalloc/jemalloc.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <utility>

#include "error.hpp"
#include "memory/data_limit.hpp"
#include "memory/relief.hpp"
#include "memory/thread_cache.hpp"

// Read by jemalloc at its start. Without `retain` an extent is mapped exactly as large as it must be and unmapped when
// it is purged, so that what is mapped is what is held. A free extent serves a request however much smaller, where
// jemalloc would leave one of more than 64 times the size alone and map another.
extern "C" {
[[gnu::visibility("default")]] const char* malloc_conf = "retain:false,narenas:4,lg_extent_max_active_fit:63";
}

namespace headroom::arena {

namespace {

constexpr size_t page = page_bytes;
constexpr size_t metadata_align = size_t{2} << 20;  // of what jemalloc maps for itself, in blocks that it hardly fills
constexpr size_t huge_page = size_t{2} << 20;
constexpr size_t most_of_a_cache = size_t{1} << 20;  // of a thread, with the rest of the extent
constexpr size_t least_large = 4 * page;             // from here on jemalloc gives an allocation an extent of its own

// Of the allocation under way on this thread.
struct Wanted {
  size_t bytes = 0;
  bool must_pass = false;
};
thread_local Wanted wanted_now;
thread_local int64_t refused_heap_bytes = 0;

int64_t (*give_back)(int64_t wanted_bytes) = nullptr;       // set before other threads exist
constexpr int64_t least_returned_bytes = int64_t{1} << 20;  // of one call in the middle of malloc

size_t pages_of(size_t bytes) { return (bytes + page - 1) / page * page; }

// What of an extent of `extent_bytes` the allocation under way can write to; jemalloc begins it within the first page.
size_t writable(size_t extent_bytes) {
  const size_t wanted = wanted_now.bytes;
  return wanted >= least_large && wanted <= extent_bytes ? std::min(extent_bytes, pages_of(wanted) + page)
                                                         : extent_bytes;
}

void* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// nullptr: the system has no more.
char* map_aligned(size_t bytes, size_t align) {
  const size_t extra = align > page ? align - page : 0;
  auto* memory = static_cast<char*>(map(bytes + extra));
  if (memory == nullptr) return nullptr;
  const size_t before = (align - reinterpret_cast<uintptr_t>(memory) % align) % align;
  if (before > 0) munmap(memory, before);
  if (extra > before) munmap(memory + before + bytes, extra - before);
  return memory + before;
}

// Extents are never extended in place.
void* extent_alloc(extent_hooks_t*, void* place, size_t bytes, size_t align, bool* zero, bool* commit, unsigned) {
  if (place != nullptr) return nullptr;
  const size_t promised = writable(bytes);
  const Permit permit = wanted_now.must_pass ? Permit(0) : try_to_grow(static_cast<int64_t>(promised));
  char* memory = permit ? map_aligned(bytes, align) : nullptr;
  if (memory == nullptr) return nullptr;
  *zero = true;
  *commit = true;
  if (align >= metadata_align) return memory;
  pages_mapped(PageUse::tensors, memory, promised);
  pages_mapped(PageUse::spare, memory + promised, bytes - promised);
  note_mapped(static_cast<int64_t>(bytes));
  // Where the system gives huge pages unasked, the last of what is promised would bring spare ones with it. None
  // reaches across this border.
  if (bytes >= huge_page && bytes > promised) madvise(memory + promised, bytes - promised, MADV_NOHUGEPAGE);
  return memory;
}

// Until a thread's first allocation has returned. Before it jemalloc makes the thread's cache, and crashes where there
// is no memory for that, or where the thread frees anything meanwhile.
bool thread_begins() {
  uint64_t allocated_bytes = 1;
  size_t size = sizeof allocated_bytes;
  mallctl("thread.allocated", &allocated_bytes, &size, nullptr, 0);
  return allocated_bytes == 0;
}

// malloc has no way to call a new_handler, and much code of C crashes where it gets nothing.
Permit make_room_for_heap(int64_t bytes) {
  if (give_back == nullptr || bytes > memory_bound() || inside_malloc()) return {};
  const ThreadMark inside = enter_malloc();
  // Another thread may be on the ladder: it is asked again whatever came back here.
  give_back(std::max(bytes, least_returned_bytes));
  Permit permit = try_to_grow_heap(bytes);
  if (permit) return permit;
  // What came back by free() is the heap's still.
  purge_heap();
  return try_to_grow_heap(bytes);
}

void* heap_alloc(extent_hooks_t*, void* place, size_t bytes, size_t align, bool* zero, bool* commit, unsigned) {
  if (place != nullptr) return nullptr;
  const auto wanted = static_cast<int64_t>(bytes);
  Permit permit = try_to_grow_heap(wanted);
  const bool may_be_its_cache = align >= metadata_align || bytes <= most_of_a_cache;
  if (!permit && may_be_its_cache && thread_begins()) permit = Permit(0);
  // Blocks for jemalloc itself are asked for with its locks held.
  if (!permit && align < metadata_align) permit = make_room_for_heap(wanted);
  if (!permit) permit = try_to_grow_heap_at_last(wanted);
  if (!permit) note_heap_refusal(wanted);
  char* memory = permit ? map_aligned(bytes, align) : nullptr;
  if (memory == nullptr) {
    refused_heap_bytes = wanted;
    return nullptr;
  }
  pages_mapped(PageUse::heap, memory, bytes);
  *zero = true;
  *commit = true;
  return memory;
}

// True: too many mappings, and jemalloc keeps it.
bool unmap(void* data, size_t bytes) {
  // First: once the addresses are free, another thread may map them again and report them.
  pages_unmapped(data, bytes);
  return munmap(data, bytes) != 0;
}

bool heap_dalloc(extent_hooks_t*, void* data, size_t bytes, bool, unsigned) { return unmap(data, bytes); }
void heap_destroy(extent_hooks_t*, void* data, size_t bytes, bool, unsigned) { unmap(data, bytes); }

bool extent_dalloc(extent_hooks_t*, void* data, size_t bytes, bool, unsigned) {
  if (unmap(data, bytes)) return true;
  mapped.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return false;
}
void extent_destroy(extent_hooks_t* self, void* data, size_t bytes, bool committed, unsigned arena) {
  extent_dalloc(self, data, bytes, committed, arena);
}
bool extent_split(extent_hooks_t*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
bool extent_merge(extent_hooks_t*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

extent_hooks_t hooks = {extent_alloc, extent_dalloc, extent_destroy, nullptr,     nullptr,
                        nullptr,      nullptr,       extent_split,   extent_merge};
extent_hooks_t heap_hooks = {heap_alloc, heap_dalloc, heap_destroy, nullptr,     nullptr,
                             nullptr,    nullptr,     extent_split, extent_merge};

void control(const char* name, void* old_value, size_t* old_size, void* value, size_t size) {
  const int problem = mallctl(name, old_value, old_size, value, size);
  if (problem == EAGAIN) throw std::bad_alloc();
  if (problem != 0) {
    throw Error(Exit::bug, "memory",
                std::string("jemalloc does not know ") + name + ": Headroom needs jemalloc 5.2 or newer");
  }
}

// The heap's own, and the one for what is larger than 8 MiB. jemalloc makes one when it is first needed, and crashes
// where there is no memory for it by then. Hardly a page of what this maps is written to.
void make_heap_arenas() {
  const ScopedDataLimit highest(RLIM_INFINITY);
  unsigned count = 0;
  size_t size = sizeof count;
  control("opt.narenas", &count, &size, nullptr, 0);
  for (unsigned i = 0; i < count; ++i) {
    void* data = mallocx(1, static_cast<int>(MALLOCX_ARENA(i)) | MALLOCX_TCACHE_NONE);
    if (data != nullptr) dallocx(data, MALLOCX_TCACHE_NONE);
  }
  constexpr size_t very_large = size_t{16} << 20;
  void* data = mallocx(very_large, MALLOCX_TCACHE_NONE);
  if (data != nullptr) dallocx(data, MALLOCX_TCACHE_NONE);
}

void bind_arenas() {
  make_heap_arenas();
  unsigned count = 0;
  size_t size = sizeof count;
  control("arenas.narenas", &count, &size, nullptr, 0);
  for (unsigned i = 0; i < count; ++i) {
    extent_hooks_t* given = &heap_hooks;
    control(("arena." + std::to_string(i) + ".extent_hooks").c_str(), nullptr, nullptr, &given, sizeof given);
  }
}

constexpr ssize_t never = -1, at_once = 0;

// When free memory is given back: "dirty" as it is, "muzzy" once its pages may be taken.
void set_decay_ms(unsigned arena, const std::string& kind, ssize_t ms) {
  const std::string name = "arena." + std::to_string(arena) + "." + kind + "_decay_ms";
  control(name.c_str(), nullptr, nullptr, &ms, sizeof ms);
}

unsigned make_arena() {
  unsigned index = 0;
  size_t size = sizeof index;
  extent_hooks_t* given = &hooks;
  control("arenas.create", &index, &size, &given, sizeof given);
  set_decay_ms(index, "dirty", never);
  set_decay_ms(index, "muzzy", at_once);
  return index;
}

// What is smaller than least_large has an arena of its own: it would cut its blocks out of what a large tensor gave
// back, which could then not serve the next one of that size.
struct Arenas {
  unsigned small = make_arena(), large = make_arena();

  unsigned of(size_t bytes) const { return bytes < least_large ? small : large; }
};

const Arenas& arenas() {
  static const Arenas made;
  return made;
}

void set_dirty_decay_ms(ssize_t ms) {
  set_decay_ms(arenas().small, "dirty", ms);
  set_decay_ms(arenas().large, "dirty", ms);
}

// Where memory is short there may be none for a name.
void purge_arena(unsigned arena) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "arena.%u.purge", arena);
  mallctl(name.data(), nullptr, nullptr, nullptr, 0);
}

// Memory that was given back may have an end that was spare before and is written to now, by one tensor or by many
// small ones.
bool use_spare_pages(const void* data, size_t bytes, bool must_pass) {
  const int64_t spare = spare_bytes_in(data, bytes);
  if (spare == 0) return true;
  const Permit permit = must_pass ? Permit(0) : try_to_grow(spare);
  if (!permit) return false;
  claim_spare_pages(data, bytes);
  return true;
}

}  // namespace

void* allocate(size_t bytes, bool must_pass) try {
  wanted_now = {bytes, must_pass};
  void* data = mallocx(bytes, static_cast<int>(MALLOCX_ALIGN(alignment)) |
                                  static_cast<int>(MALLOCX_ARENA(arenas().of(bytes))) | thread_cache_flag());
  wanted_now = {};
  if (data == nullptr || spare_bytes() == 0 || use_spare_pages(data, bytes, must_pass)) return data;
  release(data);
  return nullptr;
} catch (const std::bad_alloc&) {  // not even an arena could be made; the next call tries again
  return nullptr;
}

size_t occupied_bytes(const void* data, size_t bytes) {
  const size_t usable = sallocx(data, 0);
  return bytes >= least_large ? std::min(usable, pages_of(bytes)) : usable;
}

void bind_heap(int64_t (*give_back_bytes)(int64_t)) {
  static const bool bound = [&] {
    bind_arenas();
    give_back = give_back_bytes;
    return true;
  }();
  (void)bound;
}

int64_t take_refused_heap_bytes() { return std::exchange(refused_heap_bytes, 0); }

void release(void* data) { dallocx(data, thread_cache_flag()); }

WithoutFreeLists::WithoutFreeLists() {
  set_dirty_decay_ms(at_once);
  purge();
  used_peak = used_bytes();
}
WithoutFreeLists::~WithoutFreeLists() { set_dirty_decay_ms(never); }

int64_t purge() {
  const int64_t before = mapped_bytes();
  drop_thread_cache();
  purge_arena(arenas().small);
  purge_arena(arenas().large);
  return before - mapped_bytes();
}

void purge_heap() {
  // The thread's cache may be being filled.
  if (!inside_malloc()) mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
  purge_arena(MALLCTL_ARENAS_ALL);
}

}  // namespace headroom::arena

#endif
