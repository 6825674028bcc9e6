// Resident pages of code. They are pages of files, which U does not count and the kernel drops when it needs memory;
// but top, Slurm and /usr/bin/time count them as the process's. Most of LibTorch's run once: it registers its
// operators.
#pragma once

#include <cstdint>

namespace headroom {

// Takes all code out of this process's memory, in large mappings that nobody has written to. What runs again comes back
// from the kernel's cache of files, by minor page faults. Returns the bytes that were resident. Some milliseconds.
// No library may be unloaded meanwhile. [control]
int64_t drop_code_pages();

}  // namespace headroom
