// The trainer's side of its supervisor.
#pragma once

#include <filesystem>

namespace headroom {

// [control] First thing in main: this process is told (SIGTERM) when its supervisor dies, the kernel picks it before
// its supervisor when memory runs out, and a terminal that closes leaves the word to the supervisor, which asks to
// stop.
void become_supervised();

// [control] After become_supervised(), once: where the black box is and the post-mortem goes. Does nothing without a
// supervisor.
void tell_supervisor_run_folder(const std::filesystem::path& folder);

// NAME= of the environment variable with the descriptor to tell on.
inline constexpr const char* supervisor_variable = "HEADROOM_SUPERVISOR_FD=";

}  // namespace headroom
