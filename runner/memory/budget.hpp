// The limit of this process, and the question everyone asks who is about to hold more: tensors, batches, caches,
// plugins' scratch.
#pragma once

#include <cstdint>

#include "memory/ledger.hpp"

namespace headroom {

// Bounds U; 0: no limit. [any]
void set_memory_limit(int64_t limit_bytes);
int64_t memory_limit();

// Whether U may grow by `bytes`. What was granted before and is not touched yet counts. Some 20 us with a limit;
// allocates nothing. [any]
bool may_grow(int64_t bytes);

// The same, asking the pressure ladder (memory/relief.hpp) to give back first where it does not fit. [any]
bool make_room(int64_t bytes);

// The last request that was refused, for the sentence about it: by the time somebody has caught the exception, the
// tensors of the attempt are gone.
struct Refusal {
  int64_t bytes = 0;          // asked for; 0: there was none, or it was taken
  int64_t granted_bytes = 0;  // before, and not touched yet
  LedgerReading ledger;       // at that moment; without one, now
};
void note_refusal(int64_t bytes);  // [any]
Refusal take_refusal();            // [any]

// Between two windows: whatever was granted has been touched by now, or never will be. [any]
void settle_growth();

}  // namespace headroom
