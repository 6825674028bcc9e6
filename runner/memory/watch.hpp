// A supervisor for any program (`headroom watch`): records what its processes hold over time, and what killed one of
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/child_process.hpp"
#include "memory/oom_kills.hpp"
#include "memory/process_tree.hpp"

namespace headroom {

// What the processes of a watched program held over time (timeline.cpp): one process from its first look to its last.
// Number 0 is "others": those too small or too many to keep apart.
struct ProcessSeries {
  int64_t pid = 0, parent = 0;
  std::string name = {}, command = {};
  int64_t first_ms = 0, last_ms = 0;  // since the start, as all times here
  int64_t peak_bytes = 0, last_bytes = 0;
  bool by_rss = false;
};

struct MemoryAround {
  int64_t used_bytes = 0;                     // of the cgroup or machine that bounds the program; 0: not known
  int64_t others_bytes = 0;                   // of it, anonymous memory of processes that are not the program's
  int64_t files_bytes = 0;                    // of it, files in memory (tmpfs) that no process of the program maps
  double some_percent = 0, full_percent = 0;  // memory pressure (PSI) over the last ten seconds
  int64_t beside_bytes() const { return others_bytes + files_bytes; }
};

struct TimelineSample {
  int64_t time_ms = 0;
  int64_t total_bytes = 0;
  uint32_t processes = 0;
  MemoryAround around = {};
  std::vector<std::pair<uint32_t, int64_t>> bytes = {};  // by number of series; others only where there are some

  int64_t bytes_of(uint32_t series) const;
};

// Its memory is bounded, however long the program runs.
class Timeline {
 public:
  void add(int64_t time_ms, const std::vector<WatchedProcess>& processes, const MemoryAround& around);

  // Forgets MemoryAround's bytes so far: the bounding cgroup changes.
  void forget_use();

  // The last few hundred samples are all there. Older ones are thinned out: of two neighbours the larger stays.
  const std::vector<TimelineSample>& samples() const { return samples_; }
  const std::vector<ProcessSeries>& series() const { return series_; }
  const ProcessSeries* find(int64_t pid) const;       // nullptr: it was never seen, or is among the others
  int64_t peak_bytes() const { return peak_bytes_; }  // of all together
  int64_t peak_ms() const { return peak_ms_; }

  struct Growth {
    uint32_t series = 0;
    int64_t before_bytes = 0, after_bytes = 0;
    double seconds = 0;
  };
  // The process that grew most within the last minute of samples. nullopt: none grew.
  std::optional<Growth> growth() const;

  struct Around {
    MemoryAround first = {}, last = {};
    double seconds = 0;  // between the two
  };
  // Memory that is not the program's, over the same time. `last` is the sample of the last second with most of it: a
  // killed process has given its memory back before its end is noticed. All 0: unknown.
  Around around() const;

  // The `count` series with the largest peaks, largest first; never "others".
  std::vector<uint32_t> largest(size_t count) const;

 private:
  using Samples = std::vector<TimelineSample>;
  Samples::const_iterator since(int64_t ms_back) const;  // the first that is not older
  uint32_t number_of(const WatchedProcess& process, int64_t time_ms);
  void forget_small();
  void thin_out();

  std::vector<ProcessSeries> series_{ProcessSeries{.name = "others"}};
  std::map<int64_t, uint32_t> by_pid_;  // who was there at the last sample
  std::vector<TimelineSample> samples_;
  int64_t peak_bytes_ = 0, peak_ms_ = 0;
};

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
