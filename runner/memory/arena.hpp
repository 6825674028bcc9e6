// Memory for tensors, from a jemalloc arena of its own. Freed memory stays mapped and is used again, so that a steady
// state has no page faults; purge() gives it back. Only this file knows jemalloc: builds with sanitizers use the
// system's allocator here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::arena {

inline constexpr size_t alignment = 64;

// [any] At least `bytes`, 64-byte aligned. nullptr when the memory limit (memory/budget.hpp) has no room for the arena
// to grow, or the system has no more. `must_pass`: the limit is not asked.
void* allocate(size_t bytes, bool must_pass = false);
// [any] What an allocation of `bytes` at `data` may come to hold: small sizes are rounded up to classes, large ones to
// pages.
size_t occupied_bytes(const void* data, size_t bytes);
// [any] From any thread.
void release(void* data);

// [any] Gives what is not lent back to the system; returns how much that was.
int64_t purge();

// [any] The same for what malloc and new have handed out and got back, in the whole process. Its size shows in U alone.
void purge_heap();

// [any] From the system, lent or not.
int64_t mapped_bytes();

// While one lives, what tensors give back goes to the system at once, so that what is mapped is what is in use. For
// measuring: it is slow. [control] One at a time.
class WithoutFreeLists {
 public:
  WithoutFreeLists();
  ~WithoutFreeLists();
  WithoutFreeLists(const WithoutFreeLists&) = delete;
  WithoutFreeLists& operator=(const WithoutFreeLists&) = delete;
  // What tensors held of the system, spare pages left out: now, and at most while it lived.
  int64_t now_bytes() const;
  int64_t peak_bytes() const;
};

// malloc and new ask the memory limit too before the heap grows. [control] Once, first thing in main.
void bind_heap();

// [any] What this thread's last request to the system for the heap was, where it failed; 0: none did since the last
// call. For a new_handler, which is not told.
int64_t take_refused_heap_bytes();

}  // namespace headroom::arena
