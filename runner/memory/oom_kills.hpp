// Was it the kernel that killed a process because memory ran out? Told from the oom_kill counters of the process's
// memory cgroup, before and after, and from the kernel's log where this process may read it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct LoggedKill {
  int64_t pid = 0;
  int64_t held_bytes = 0;           // anonymous and shared memory; 0: not said
  std::string victims_cgroup = {};  // below the mount; "": not said
};

// What the kernel's log says of its OOM kills: the victims by process id, and what they held. Follows /dev/kmsg from
// now on. Usually only root may; in a container, where ids differ from the kernel's, nobody can use it: then read()
// finds nothing. [control]
class KernelLog {
 public:
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  std::vector<LoggedKill> read(int patience_ms = 0);  // those since the last call; waits so long for a first

 private:
  int file_ = -1;
  std::string cgroup_;  // from the oom-kill line that precedes its victim's
};

// One line of the log. "oom-kill:constraint=..." gives the `cgroup` of the victim; "... Killed process 77 (python3)
// total-vm:..." gives a kill with it.
bool parse_kill(std::string_view line, std::string& cgroup, LoggedKill& kill);

struct OomKill {
  std::filesystem::path cgroup = {};  // whose limit was reached; empty: the machine's memory ran out, or nobody can say
  int64_t limit_bytes = 0;            // of that cgroup or machine; 0: not known
  int64_t held_bytes = 0;             // by the victim, as the kernel's log says; 0: it may not be read
  std::string evidence = {};          // one clause: what was counted where
  bool certain = false;
};

// Counters are compared with those when a process was first seen in a cgroup, so start one before the process.
// [control]
class OomKills {
 public:
  // `root` replaces "/" in tests, where the kernel's log, which knows best, may also be left out.
  explicit OomKills(std::string root = "/", bool with_log = true);

  // Where a living process is now (0: this one); remember it with the process. Cheap for places seen before. One that
  // is about to end shows in the root of its hierarchy: an ancestor of `before` counts as no move.
  using Place = size_t;
  std::optional<Place> place_of(int64_t pid, std::optional<Place> before = std::nullopt);
  using Folders = std::vector<std::filesystem::path>;
  const Folders& folders_of(Place place) const { return places_[place]; }  // as memory_cgroup_folders()

  // A process, last seen alive in `place`, died of SIGKILL: if a kill was counted that nobody claimed yet, it is this
  // one's. Without a place, or where that counts nothing, the whole system's count has to do.
  std::optional<OomKill> claim(int64_t pid, std::optional<Place> place);

  // What the whole system had counted at the call before this one is nobody's whom we do not know yet. Call it every
  // now and then: it takes a large process a while to die.
  void settle();

 private:
  struct Counter {
    int64_t first = 0, claimed = 0;              // of the cgroup itself
    int64_t first_below = 0, claimed_below = 0;  // with all below it
    int64_t first_hits = 0;                      // how often its limit had been met
  };
  void note(const std::filesystem::path& folder);
  void read_log(int64_t pid);
  bool is_counted(const Folders& place) const;
  int64_t unclaimed_in_system() const;
  std::optional<OomKill> from_log(int64_t pid, std::optional<Place> place);
  std::optional<OomKill> from_counters(const Folders& place);
  std::optional<OomKill> from_system();
  void name_limit(const Folders& place, OomKill& kill) const;
  int64_t system_rise() const;

  std::string root_;
  std::optional<KernelLog> log_;
  std::map<int64_t, LoggedKill> logged_;  // and not claimed
  std::map<std::string, Place> known_;    // by /proc/PID/cgroup
  std::vector<Folders> places_;           // as memory_cgroup_folders()
  std::map<std::filesystem::path, Counter> counters_;
  int64_t system_first_ = 0, system_claimed_ = 0, system_settling_ = 0;
  int64_t recently_logged_ = 0;  // and not claimed, since the system's count was settled
};

}  // namespace headroom
