// What the dynamic loader would say of the trainer, in a sentence that a user can act upon.
#pragma once

#include <filesystem>

namespace headroom {

// Error(bad_input) where the loader does not find every library of `program`: which, and what to do. A program that is
// not there, or is not asked by the loader's rules (another C library), passes. Starts a process that takes some
// milliseconds. [control]
void require_libraries(const std::filesystem::path& program);

}  // namespace headroom
