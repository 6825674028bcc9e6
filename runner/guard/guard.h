/* runner/guard/: libheadroom_guard, which keeps an ordinary Python process with PyTorch below a memory limit. Start here.
 *
 *   guard            (this file) the C functions that python/headroom/guard.py loads with ctypes
 *   guarded_process  the limit in force, its monitor and its black box; one for the process
 *   extent_arena     memory for tensors from mmap and malloc: jemalloc cannot be loaded into a process that runs already
 *
 * The library holds runner/memory's budget and tensor allocator a second time, over that arena. It puts the allocator in
 * place of LibTorch's at the first limit; tensors that exist by then stay where they are, and count as other memory.
 *
 * Rules:
 *  - The process must have loaded the torch that hr_guard_torch() names, before this library.
 *  - Nothing throws. Where a function takes `text`, it writes one sentence of at most `room` bytes into it, with the
 *    final zero.
 *  - Threads: any, unless a function says [control]: then one thread at a time.
 *  - A process made with fork() goes on without a limit, and cannot have another.
 */
#ifndef HEADROOM_GUARD_H
#define HEADROOM_GUARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the process held at one moment, in bytes. tensor, kept and other add up to held. */
typedef struct hr_guard_reading {
  int64_t time_ms;      /* since the epoch; 0: there is no such moment */
  int64_t asked_bytes;  /* of the tensor that was refused; 0: none was */
  int64_t limit_bytes;  /* 0: none */
  int64_t bound_bytes;  /* what others leave of the limit: at most limit_bytes; 0: not known */
  int64_t held_bytes;   /* anonymous and shared memory, as the kernel counts it for this process */
  int64_t peak_bytes;   /* the most of it that was ever seen */
  int64_t tensor_bytes; /* in tensors made under a limit */
  int64_t kept_bytes;   /* freed by tensors and kept for the next */
  int64_t other_bytes;  /* the rest: Python, libraries, stacks, tensors made before */
} hr_guard_reading;

/* What a black box says. */
typedef struct hr_guard_box {
  int64_t pid;
  int64_t began_ms;  /* since the epoch */
  int64_t ended;     /* 1: the process took it down; 0: it still runs, or was killed */
  hr_guard_reading last, most; /* the last record, and the one with the most held, of the last minutes */
} hr_guard_box;

/* "2.13.0": the version of LibTorch that this library was built with. */
const char* hr_guard_torch(void);

/* Sets the limit: "auto", "80%", bytes in digits, or "off" (runner/memory/limits.hpp). `box`: the file of a black box to
 * write from now on; NULL: none. `text` gets the rule that decided, or, where the result is not 0, why nothing changed.
 * [control] */
int32_t hr_guard_limit(const char* wanted, const char* box, char* text, size_t room);

void hr_guard_now(hr_guard_reading* reading);

/* How much more tensors may hold, with what is kept for them; may be below 0. INT64_MAX: there is no limit. */
int64_t hr_guard_room(void);

/* The last refused tensor; time_ms is 0 where none was. */
void hr_guard_refused(hr_guard_reading* reading);

/* How many tensors were refused so far, those that a test made fail among them. */
int64_t hr_guard_refusals(void);

/* Gives freed memory back to the system; returns how much. */
int64_t hr_guard_give_back(void);

/* The most that tensors held since the last call, in bytes. [control] */
int64_t hr_guard_recent_tensor_peak(void);

/* Reads a black box, also while its process runs. Not 0: there is none, and `text` says so. */
int32_t hr_guard_read_box(const char* box, hr_guard_box* found, char* text, size_t room);

/* Ends monitor and black box, before the process does. Tensors stay valid. [control] */
void hr_guard_end(void);

/* For tests: tensors allocated so far; and makes the one after `skip` others fail once. Below 0: none fails. */
int64_t hr_guard_allocations(void);
void hr_guard_fail(int64_t skip);

#ifdef __cplusplus
}
#endif

#endif
