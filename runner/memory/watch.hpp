// A supervisor for any program (`headroom watch`): records what its processes hold over time, and what killed one of
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "memory/child_process.hpp"
#include "memory/oom_kills.hpp"
#include "memory/timeline.hpp"

namespace headroom {

// A process of the program that a signal ended.
struct WatchedDeath {
  WatchedProcess process;  // as it was last seen
  int64_t time_ms = 0;     // since the start
  int signal = 0;
  bool core_dumped = false;
  bool is_command = false;               // not a child of it
  std::optional<OomKill> oom_kill = {};  // with SIGKILL
  int64_t together_bytes = 0;            // held by all of them at the last look
  std::optional<Timeline::Growth> growth = {};
  ProcessSeries grower = {};  // of that growth
  Timeline::Around around = {};

  // Killed, or crashed: not a signal that asks.
  bool is_violent() const;
};

// What bounds the program.
struct WatchBound {
  std::filesystem::path cgroup;  // empty: the machine
  int64_t limit_bytes = 0;
};

struct WatchReport {
  std::vector<std::string> command = {};
  int64_t started_ms = 0;  // since the epoch
  double seconds = 0;
  int64_t pid = 0;
  std::optional<ChildEnd> end = {};  // nullopt: it runs
  std::vector<WatchedDeath> deaths = {};
  int64_t more_deaths = 0;  // beyond the first hundred
  Timeline timeline = {};
  WatchBound bound = {};
  int64_t left_running = 0;  // processes that outlived the command
  std::optional<ReceivedSignal> last_forwarded = {};

  // The death to report first: OOM kills before other kills and crashes, children before the command. nullptr: no
  // process was killed or crashed.
  const WatchedDeath* main_death() const;
};

struct WatchOptions {
  double interval_seconds = 0.5;                      // between two looks; shorter in the first seconds
  double telling_seconds = 10;                        // between two calls of `tell`
  std::function<void(const WatchReport&)> tell = {};  // while it runs
};

// Runs `command` (looked up in PATH) to its end, and forwards SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1 and SIGUSR2 to
// it. Processes that outlive it go on unwatched. Throws std::system_error when it cannot be started. [control]
WatchReport watch(const std::vector<std::string>& command, const WatchOptions& options);

}  // namespace headroom
