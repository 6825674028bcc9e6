// What the processes of a watched program held over time, in bounded memory however long it runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/process_tree.hpp"

namespace headroom {

// One process from its first look to its last. Number 0 is "others": those too small or too many to keep apart.
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

class Timeline {
 public:
  void add(int64_t time_ms, const std::vector<WatchedProcess>& processes, const MemoryAround& around);

  // The use so far was of another cgroup than that to come.
  void forget_use();

  // Every instant of the last few hundred; further back ever fewer, of two neighbours the one that held more.
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
  // Who grew most up to the last sample, at most a minute back. nullopt: nobody did.
  std::optional<Growth> growth() const;

  struct Around {
    MemoryAround first = {}, last = {};
    double seconds = 0;  // between the two
  };
  // What is not the program's, over the same time. `last` is when it was most in the last second, for a process that is
  // killed gives its memory back before it is seen to be gone. All 0 where it is not known.
  Around around() const;

  // In the order of their peaks, at most `count`; "others" is not among them.
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

}  // namespace headroom
