// How many compute threads a run uses when experiment.threads is "auto", and whether it has its cores to itself.
#pragma once

#include <string>

namespace headroom {

// The physical cores that this process may run on, but at most the cgroup's cpu quota, rounded up, and the CPUs that
// Slurm gave the task. At least 1. `root` replaces "/" in tests.
int auto_threads(const std::string& root = "/");

// True where the machine has an idle processor for each of auto_threads(), by what runs just now, and no quota holds
// them back. Takes a millisecond or two. False where the kernel does not say.
bool cores_are_free(const std::string& root = "/");

}  // namespace headroom
