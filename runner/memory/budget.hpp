// The limit of this process, and the question everyone asks who is about to hold more: tensors, batches, caches,
// malloc, files that are written into memory.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "memory/ledger.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {

// Bounds U; 0: no limit. [any]
void set_memory_limit(int64_t limit_bytes);
int64_t memory_limit();

// How far U may grow while others hold what they hold now: the monitor tells, and lowers it below the limit when they
// take what the run counted on. INT64_MAX: nobody does. [any]
void set_memory_ceiling(int64_t ceiling_bytes);

// Has the ceiling told anew where U has grown much since it was, the bound is near, and `bytes` more are to be taken:
// others may have grown as well. Where they take so fast that they would want the same memory before it is written to,
// waits until they have it or stop, half a second at most. To be called before try_to_grow() by whoever takes much,
// without a lock that malloc needs. [any]
void look_before_growing(int64_t bytes);

// Tells the ceiling anew, and returns what others will take soon (memory/surroundings.hpp); empty: nothing does.
// Returns when nobody is inside the function that was set before.
void set_ceiling_look(std::function<int64_t()> look);

// What bounds U now: the lower of the two; 0: nothing.
int64_t memory_bound();

// Left free below a bound for what nobody can be refused: small allocations, stacks, libraries.
int64_t cushion_bytes(int64_t bound_bytes);

// Permission to grow; its bytes count as held while it lives. By its end the memory is written, or pages_mapped() has
// been told of it.
class Permit {
 public:
  Permit() = default;  // refused
  explicit Permit(int64_t bytes) : bytes_(bytes), granted_(true) {}
  Permit(Permit&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), granted_(std::exchange(other.granted_, false)) {}
  Permit& operator=(Permit&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(granted_, other.granted_);
    return *this;
  }
  ~Permit();
  explicit operator bool() const { return granted_; }

 private:
  int64_t bytes_ = 0;
  bool granted_ = false;
};

// Asks whether U may grow by `bytes`, beside all that is promised and not written yet. Some 20 us with a limit;
// allocates nothing. [any]
Permit try_to_grow(int64_t bytes);

// The same, asking the pressure ladder (memory/relief.hpp) to give back first where it does not fit. [any]
Permit make_room(int64_t bytes);

// For what malloc asks of the system. Much is refused as by try_to_grow(). Little may use the cushion, and as much
// again beyond the limit as far as the kernel does not kill there: whoever is refused a few bytes cannot go on. [any]
Permit try_to_grow_heap(int64_t bytes);
void set_kill_line(int64_t bytes);  // where the kernel kills: the smallest room at the start; 0: unknown

// How often malloc was refused. A library in C that was refused memory may call that a damaged file: who reads compares
// the counts before and after. [any]
int64_t heap_refusals();

// The last request that was refused, for the sentence about it: by the time somebody has caught the exception, the
// tensors of the attempt are gone.
struct Refusal {
  int64_t bytes = 0;           // asked for; 0: there was none, or it was taken
  int64_t promised_bytes = 0;  // before, and not written yet
  LedgerReading ledger;        // at that moment; without one, now
};
void note_refusal(int64_t bytes);       // [any]
void note_heap_refusal(int64_t bytes);  // the same, of malloc [any]
Refusal take_refusal();                 // [any]

}  // namespace headroom
