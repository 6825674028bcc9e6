// How many compute threads a run uses when experiment.threads is "auto", and starting them.
#pragma once

#include <string>

namespace headroom {

// Physical cores this process may run on, no more than the cgroup's cpu quota rounded up. At least 1. `root` replaces
// "/" in tests.
int auto_threads(const std::string& root = "/");

// OpenMP's threads, before tensors take what their stacks need: OpenMP ends the process where it cannot start one.
// Error(does_not_fit). REQUIRES: at::set_num_threads(threads). [control]
void start_compute_threads(int threads);

}  // namespace headroom
