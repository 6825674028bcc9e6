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
#include "memory/black_box.hpp"
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

// Notices from outside that a run stands still: a call that does not return, a disk that does not answer. It sees
// plugin calls of the whole process: of several runs in one, a run that moves hides one that does not.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `after`: how long a run may stand still before that is told.
  explicit StallWatch(std::chrono::milliseconds after) : after_(after) {}

  // A look at the run's black box, BlackBoxView::head(). A clause: "no progress for 60 s at step 12 of epoch 1: 'wrist
  // read' has not returned". Told after `after`, and again each time that has doubled; nullopt: nothing to tell. Call
  // it at least twice in that time: what lies longer between two looks was not seen, as while both processes were
  // stopped. [control]
  std::optional<std::string> look(const BlackBoxReading& box, Clock::time_point now);

 private:
  std::chrono::milliseconds after_;
  std::optional<BlackBoxReading> last_;
  Clock::time_point looked_{};
  std::chrono::milliseconds still_{};    // how long it has stood still
  std::chrono::milliseconds tell_at_{};  // how long it must stand still to be told next
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
