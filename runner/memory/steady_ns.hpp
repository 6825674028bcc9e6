// The clock by which calls of plugins, operators and steps are timed.
#pragma once

#include <chrono>
#include <cstdint>

namespace headroom {

// Nanoseconds of std::chrono::steady_clock. [any]
inline int64_t steady_ns() {
  using std::chrono::steady_clock, std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace headroom
