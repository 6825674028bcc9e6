// How many compute threads a run uses when experiment.threads is "auto".
#pragma once

#include <string>

namespace headroom {

// Physical cores this process may run on, no more than the cgroup's cpu quota rounded up. At least 1. `root` replaces
// "/" in tests.
int auto_threads(const std::string& root = "/");

}  // namespace headroom
