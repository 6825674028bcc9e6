// The limit of this process, and the question everyone asks who is about to hold more: tensors, batches, caches,
// plugins' scratch.
#pragma once

#include <cstdint>

namespace headroom {

// Bounds U; 0: no limit. [any]
void set_memory_limit(int64_t limit_bytes);
int64_t memory_limit();

// Whether U may grow by `bytes`. What was granted before and is not touched yet counts. Some 20 us with a limit;
// allocates nothing. [any]
bool may_grow(int64_t bytes);

// The same, asking the pressure ladder (memory/relief.hpp) to give back first where it does not fit. [any]
bool make_room(int64_t bytes);

// What the last request that was refused had asked for, for the sentence about it; 0 once it was taken. [any]
void note_refusal(int64_t bytes);
int64_t take_refusal();

// Between two windows: whatever was granted has been touched by now, or never will be. [any]
void settle_growth();

}  // namespace headroom
