// The parent's side of supervision: runs the trainer as a child, forwards signals, tells when it stands still, waits,
// and finds out how it ended. It has no LibTorch, so it is small and survives when the kernel kills the trainer. The
// child's side is supervised.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
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
  std::optional<OomKill> oom_kill;               // the kernel killed it for lack of memory
  std::optional<ReceivedSignal> last_forwarded;  // the last signal that was passed on to it
  std::filesystem::path run_folder;              // empty: it ended before it had one

  // The child's own exit code; for one that a signal ended: 137 SIGKILL, 130 SIGINT, 75 SIGTERM and SIGUSR1, 70 any
  // other.
  int exit_code() const;
};

// Tells that a run stands still: a clause of StallWatch, once it has stood still for `after`. Without `tell` nobody
// looks.
struct StallReport {
  std::chrono::milliseconds after = std::chrono::seconds(60);
  std::function<void(const std::string& clause)> tell = {};
};

// Starts `program` with `arguments`, forwards SIGTERM, SIGUSR1, SIGHUP (as SIGTERM) and SIGINT to it, and waits for its
// end. Ctrl-C is not forwarded: the terminal sends it to the child too. Error(bug): it cannot be started.
// Error(does_not_fit): its cgroup or rlimit is too small to load its libraries. [control]
Ended supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                const StallReport& stall = {});

// Runs `program` and returns what it writes to stdout; its stderr is ours. `ended` receives how it ended. Signals are
// not forwarded. Errors as supervise(). [control]
std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments, Ended& ended);

// One clause: "was killed by the kernel for lack of memory: ...", "crashed with SIGSEGV (Segmentation fault)", "ended
// with exit code 5".
std::string how_it_ended(const ChildEnd& end, const std::optional<OomKill>& oom_kill);

}  // namespace headroom
