// Memory for tensors: a jemalloc arena of its own. What is freed stays mapped and is used again, so that steady state
// has no page faults; purge() gives it back. jemalloc is behind this seam alone: builds with sanitizers use the
// system's allocator here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::arena {

inline constexpr size_t alignment = 64;

// [any] At least `bytes`, 64-byte aligned. nullptr when the gate refuses to let the arena grow, or the system has no
// more.
void* allocate(size_t bytes);
// [any] How much memory `data` really has: sizes are rounded up to classes.
size_t usable_bytes(const void* data);
// [any] From any thread.
void release(void* data);

// [any] Gives what is not lent back to the system; returns how much that was.
int64_t purge();

// [any] The same for what malloc and new have handed out and got back, in the whole process. Its size shows in U alone.
void purge_heap();

// [any] From the system, lent or not.
int64_t mapped_bytes();

// Asked before the arena grows by `bytes`, with jemalloc's locks held: it must not allocate. nullptr: may always grow.
using Gate = bool (*)(int64_t bytes);
void set_gate(Gate may_grow);

}  // namespace headroom::arena
