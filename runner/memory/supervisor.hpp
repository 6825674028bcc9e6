// Runs the trainer as a child: forwards signals, waits, and finds out how it ended. Torch-free, and without LibTorch's
// hundred megabytes: it is there when the trainer is killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "memory/oom_kills.hpp"

namespace headroom {

struct Ended {
  int64_t pid = 0;
  ChildEnd end = {};
  double seconds = 0;                            // from its start
  std::optional<OomKill> oom_kill;               // it was SIGKILLed, by the kernel for lack of memory
  std::optional<ReceivedSignal> last_forwarded;  // the last signal that was passed on to it
  std::filesystem::path run_folder;              // empty: it ended before there was one

  // Its own, or: 137 SIGKILL, 130 SIGINT, 75 SIGTERM and SIGUSR1, 70 any other signal.
  int exit_code() const;
};

// [control] Starts `program` with `arguments`, forwards SIGTERM, SIGUSR1, SIGHUP (as SIGTERM) and SIGINT to it, and
// waits for its end. Ctrl-C reaches the child from the terminal already and is not sent twice. Error(bug) when it
// cannot be started; Error(does_not_fit) when its libraries alone are too large for its cgroup.
Ended supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments);

// The child's stdout as text; stderr stays ours. `ended` receives how it ended.
std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments, Ended& ended);

// One clause: "was killed by the kernel for lack of memory: ...", "crashed with SIGSEGV (Segmentation fault)", "ended
// with exit code 5".
std::string how_it_ended(const ChildEnd& end, const std::optional<OomKill>& oom_kill);

}  // namespace headroom
