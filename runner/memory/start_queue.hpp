// memory.wait: a run waits at its start until the memory it needs is free.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "memory/limits.hpp"
#include "memory/reservations.hpp"

namespace headroom {

struct MemoryRequest {
  std::string name;                             // of the run, as others see it
  std::string limit = "auto";                   // memory.limit, as decide_limit() takes it
  int64_t needed_bytes = 0;                     // the least U it can run with; 0: unknown, at least what it holds now
  int64_t wanted_bytes = 0;                     // the largest U that is planned; 0: what it needs
  double wait_seconds = 0;                      // memory.wait
  std::function<void(const std::string&)> say;  // a line for the log: at once, then once a minute
  std::function<bool()> cancelled;              // asked every tenth of a second
};

struct MemoryGrant {
  MemoryLimit limit;
  Reservation reservation;  // of wanted_bytes as far as the limit goes, or of what it holds now where that is unknown
};

// The clock, which tests replace.
struct WaitClock {
  std::function<double()> now_seconds;
  std::function<void(double)> sleep_seconds;
  static WaitClock of_machine();
};

// Returns once needed_bytes fit the limit. With memory.wait it waits until even wanted_bytes fit, if they ever can;
// when the time is over, needed_bytes have to do. The run that has waited longest comes first: what it wants counts as
// reserved for the others. An explicit limit (bytes, a share) is kept as given without memory.wait; with it the memory
// must be free too. nullopt: cancelled. Error(does_not_fit): the time is over, or waiting cannot help. Error(bad_input)
// and Error(cannot_write) as decide_limit() and Reservation. `root` replaces "/" for the rooms. [control]
std::optional<MemoryGrant> wait_for_memory(const MemoryRequest& request,
                                           const WaitClock& clock = WaitClock::of_machine(),
                                           const std::string& root = "/");

// Of what lacked memory under a limit of `bytes`: with less than this it would be the same attempt once more. [any]
int64_t clearly_more_than(int64_t bytes);

// For work of an unknown need, to which a limit of `too_little_bytes` was too little: waits until "auto" gives clearly
// more, or half of what others hold where that is less, as wait_for_memory() waits, by `name`, `wait_seconds`, `say`
// and `cancelled` of the request. Reserves nothing. False: others hold hardly anything that could be waited for, the
// time is over, or it was cancelled. [control]
bool wait_for_more_memory(MemoryRequest request, int64_t too_little_bytes,
                          const WaitClock& clock = WaitClock::of_machine(), const std::string& root = "/");

}  // namespace headroom
