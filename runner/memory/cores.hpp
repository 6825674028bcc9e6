// How many compute threads a run uses when experiment.threads is "auto".
#pragma once

#include <string>

namespace headroom {

// The physical cores that this process may run on, but at most the cgroup's cpu quota, rounded up, and the CPUs that
// Slurm gave the task. At least 1. `root` replaces "/" in tests.
int auto_threads(const std::string& root = "/");

}  // namespace headroom
