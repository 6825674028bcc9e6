// Memory for tensors, from a separate jemalloc arena. Freed memory stays mapped and is reused, so that a steady state
// has no page faults; purge() returns it to the system. Only this file and
// thread_cache know jemalloc; builds with sanitizers use the
// system's allocator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::arena {

inline constexpr size_t alignment = 64;

// [any] At least `bytes`, 64-byte aligned. nullptr when the memory limit (memory/budget.hpp) has no room for the arena
// to grow, or the system has no more. With `must_pass` the limit is not checked.
void* allocate(size_t bytes, bool must_pass = false);
// [any] The bytes that an allocation of `bytes` at `data` may occupy: small sizes are rounded up to classes, large ones
// to pages.
size_t occupied_bytes(const void* data, size_t bytes);
// [any] From any thread.
void release(void* data);

// [any] Returns unused memory to the system; the result is its size in bytes.
int64_t purge();

// [any] The same for memory of malloc and new that was freed, in the whole process. Only U shows how much it was.
void purge_heap();

// [any] All that is mapped from the system, used or not.
int64_t mapped_bytes();

// While one lives, freed tensors return to the system at once, so that mapped memory is memory in use. For measuring;
// it is slow. [control] One at a time.
class WithoutFreeLists {
 public:
  WithoutFreeLists();
  ~WithoutFreeLists();
  WithoutFreeLists(const WithoutFreeLists&) = delete;
  WithoutFreeLists& operator=(const WithoutFreeLists&) = delete;
  // What tensors held, without spare pages: now, and the most while this object lived.
  int64_t now_bytes() const;
  int64_t peak_bytes() const;
};

// Makes malloc and new ask the memory limit too before the heap grows. Where it has no room, `give_back` is called in
// the middle of malloc, on any thread, and asked once more where something came back. [control] Once, first thing in
// main.
void bind_heap(int64_t (*give_back)(int64_t wanted_bytes));

// [any] The size of this thread's last refused request to the system for the heap; 0: none was refused since the last
// call. For a new_handler, which does not get the size.
int64_t take_refused_heap_bytes();

}  // namespace headroom::arena
