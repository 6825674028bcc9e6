// Another process in a test's cgroup.
#pragma once

#include <sys/types.h>

#include "kernel_cgroup.hpp"

namespace headroom {

// Holds memory until it is let go.
class Neighbour {
 public:
  // Takes `bytes` evenly within `seconds` (0: at once) after `wait_seconds`.
  struct Growth {
    int64_t bytes = 0;
    double wait_seconds = 0, seconds = 0;
  };
  Neighbour(const KernelCgroup& cgroup, Growth growth);
  Neighbour(const KernelCgroup& cgroup, int64_t bytes) : Neighbour(cgroup, Growth{.bytes = bytes}) {}
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t id_;
};

}  // namespace headroom
