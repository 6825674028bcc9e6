// What the processes of a watched program held over time. Its memory is bounded, however long the program runs.
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

}  // namespace headroom
