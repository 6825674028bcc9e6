// memory.wait: a run starts when what it needs is there.
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
  int64_t needed_bytes = 0;                     // without which it cannot run; 0: unknown, at least what it holds now
  int64_t wanted_bytes = 0;                     // the largest U that is planned; 0: what it needs
  double wait_seconds = 0;                      // memory.wait
  std::function<void(const std::string&)> say;  // a line for the log: at once, then once a minute
  std::function<bool()> cancelled;              // asked every tenth of a second
};

struct MemoryGrant {
  MemoryLimit limit;
  Reservation reservation;  // of wanted_bytes as far as the limit goes, or of what it holds now where that is unknown
};

// What time is, for tests.
struct WaitClock {
  std::function<double()> now_seconds;
  std::function<void(double)> sleep_seconds;
  static WaitClock of_machine();
};

// Needs needed_bytes within the limit; with memory.wait it waits until wanted_bytes are there, where they ever can be.
// Whoever waits longer comes first: what it needs counts as reserved. An explicit limit (bytes, a share) is taken at
// its word when nobody asked to wait; with memory.wait the room must be there too. nullopt: cancelled.
// Error(does_not_fit) when the time is over, or at once when no waiting would help. Error(bad_input) and
// Error(cannot_write) as decide_limit() and Reservation. `root` replaces "/" for the rooms. [control]
std::optional<MemoryGrant> wait_for_memory(const MemoryRequest& request,
                                           const WaitClock& clock = WaitClock::of_machine(),
                                           const std::string& root = "/");

}  // namespace headroom
