// memory/: keeps a run below its memory limit, and finds out what happened if it was killed nevertheless. Start here.
//
//   limits           reads every bound on this process (cgroups, machine, rlimits) and chooses the run's limit
//   budget           (this file) enforces the limit: code asks it before it takes more memory
//   ledger           counts who holds the memory, by owner; it explains, and refuses nothing
//   untouched_pages  counts pages that were granted and not written yet, which the kernel does not count as held
//   relief           the pressure ladder: releases memory, in a fixed order, before the budget refuses a request
//   child_watch      measures child processes, whose memory is a part of U
//   monitor          a thread that reads the surroundings four times a second, lowers the budget's ceiling as
//                    other processes take memory, and writes to the black box
//   supervisor       the parent process without LibTorch: it sees the trainer die, and reads the black box afterwards
//   reservations     what the runs of one machine reserve; start_queue waits for room there (memory.wait)
//
// "U" is what a process and its children hold: RssAnon + RssShmem, without pages of files, which the kernel drops when
// it needs memory. Other folders include what they need; arena, thread_cache, allocation_table and cgroup_search are
// internal. Only tensor_allocator and device_limit include LibTorch (c10).
//
// Thread rules: [any] any thread, [control] one thread at a time, [compute] the thread that trains.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "memory/ledger.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {

// The run's limit on U, in bytes; 0: no limit. Once the run has begun it changes only where the processes of a run lend
// each other memory. [any]
void set_memory_limit(int64_t limit_bytes);
int64_t memory_limit();

// How far U may grow while other processes hold what they hold now. The monitor sets it: below the limit when they take
// memory that the run counted on, INT64_MAX when they do not. [any]
void set_memory_ceiling(int64_t ceiling_bytes);

// Call it before try_to_grow() when `bytes` is large. It brings the ceiling up to date if much was granted since the
// last update and the bound is near, because other processes may have grown meanwhile. If they take memory so fast that
// they would want the same pages before these are written, it waits until they have them or stop: at most half a
// second. REQUIRES: the caller holds no lock that malloc needs. [any]
void look_before_growing(int64_t bytes);

// `look` brings the ceiling up to date and returns the bytes that other processes will take soon
// (Surroundings::soon_bytes); empty: nothing does. Returns only when no thread is inside the function that was set
// before. [control]
void set_ceiling_look(std::function<int64_t()> look);

// What bounds U now, in bytes: the lower of limit and ceiling; 0: no limit. [any]
int64_t memory_bound();

// What stays free below a bound for memory that cannot be refused (small allocations, stacks, libraries): a 32nd of the
// bound, 3 to 32 MiB.
int64_t cushion_bytes(int64_t bound_bytes);

// Permission to grow, or false when it was refused. Its bytes count as held while it lives. REQUIRES: before it ends,
// the memory has been written, or pages_mapped() (untouched_pages.hpp) has been called for it; otherwise two callers
// could be granted the same bytes.
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

// For work that must not stop half-way because of a few bytes. While it lives, this thread's tensors of up to 64 KiB,
// and growth of the heap by up to 1 MiB at a time, pass the limit; larger requests are checked as usual. Nests.
class EssentialAllocations {
 public:
  EssentialAllocations();
  ~EssentialAllocations();
  EssentialAllocations(const EssentialAllocations&) = delete;
  EssentialAllocations& operator=(const EssentialAllocations&) = delete;
  static bool under_way();  // on this thread
  static constexpr size_t most_tensor_bytes = 64 << 10;
};

// Asks whether U may grow by `bytes`, on top of what it is and of what was granted and is not written yet. Without a
// limit it always may. Some 20 us with a limit; allocates nothing. [any]
Permit try_to_grow(int64_t bytes);

// The same, but where it does not fit the pressure ladder (relief.hpp) gives memory back and it asks once more. [any]
Permit make_room(int64_t bytes);

// For memory that malloc asks of the system. Above 1 MiB it is try_to_grow(). Up to 1 MiB it may use the cushion, and
// as much again beyond the limit as long as that stays below the kill line: code that is refused a few bytes cannot go
// on. Allocates nothing; may be called with malloc's locks held. [any]
Permit try_to_grow_heap(int64_t bytes);

// For what malloc could not get that way, and not by what was given back either: up to 64 KiB may go another cushion
// beyond the limit, still below the kill line and the ceiling. A library that maps memory for code that it generates
// may have used all the rest, and the next tensor is refused instead (heap_shortage()). As above. [any]
Permit try_to_grow_heap_at_last(int64_t bytes);

// Whether the heap has grown into the cushion that is kept for try_to_grow_heap(), since the last call. For code that
// can be refused, because most code that malloc refuses crashes. [any]
bool take_heap_growth();

// What has to come back so that the whole cushion is left. [any]
struct HeapShortage {
  int64_t bytes = 0;       // 0: it is
  bool is_severe = false;  // less than a quarter of it is left
};
HeapShortage heap_shortage();
void set_kill_line(int64_t bytes);  // the U at which the kernel kills: the smallest room at the start; 0: unknown [any]

// How often malloc was refused. A C library that got no memory may report a damaged file instead: code that reads files
// compares the count before and after. [any]
int64_t heap_refusals();
// The same for tensors: code that catches the exception and goes on computes something else. [any]
int64_t tensor_refusals();

// The last request that was refused, with the ledger of that moment. It is kept for the error message: by the time the
// exception is caught, the tensors of the attempt are gone.
struct Refusal {
  int64_t bytes = 0;           // asked for; 0: nothing was refused since the last take_refusal()
  int64_t promised_bytes = 0;  // granted earlier and not written yet
  LedgerReading ledger;        // at the refusal; of now when there was none
};
void note_refusal(int64_t bytes);         // [any]
void note_heap_refusal(int64_t bytes);    // the same for malloc; counts in heap_refusals() [any]
void note_tensor_refusal(int64_t bytes);  // the same for a tensor; counts in tensor_refusals() [any]
Refusal take_refusal();                   // and forgets it [any]

}  // namespace headroom
