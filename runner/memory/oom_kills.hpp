// Decides whether the kernel's OOM killer killed a process: by the oom_kill counters of its memory cgroup, before and
// after, and by the kernel's log where this process may read it.
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
  std::filesystem::path cgroup = {};  // whose limit was reached; empty: the machine's memory ran out, or it is unknown
  int64_t limit_bytes = 0;            // of that cgroup or machine; 0: not known
  int64_t held_bytes = 0;             // by the victim, as the kernel's log says; 0: it may not be read
  std::string evidence = {};          // one clause: what was counted where
  bool certain = false;
};

// Compares counters with those from when a process was first seen in a cgroup, so make the object before the process
// starts. [control]
class OomKills {
 public:
  // `root` replaces "/" in tests, where the kernel's log, which knows best, may also be left out.
  explicit OomKills(std::string root = "/", bool with_log = true);

  // The cgroup of a living process (0: this one), for claim() later. Cheap for cgroups seen before. nullopt or
  // `before`: it cannot be read. The kernel shows a process that is about to end in the root of its hierarchy, so an
  // ancestor of `before` counts as no move.
  using Place = size_t;
  std::optional<Place> place_of(int64_t pid, std::optional<Place> before = std::nullopt);
  using Folders = std::vector<std::filesystem::path>;
  const Folders& folders_of(Place place) const { return places_[place]; }  // as memory_cgroup_folders()

  // Call it for a process that died of SIGKILL and was last seen in `place`. If a kill was counted there that no
  // earlier call has claimed, it is this process's; nullopt: the kernel did not kill it. Without a place, or where the
  // cgroup has no counter, the whole system's counter decides (then it is not `certain`).
  std::optional<OomKill> claim(int64_t pid, std::optional<Place> place);

  // Call it now and then. Kills that the system's counter had at the previous call, and nobody has claimed since,
  // belong to processes that are not watched. The delay of one call is there because a large process takes a while to
  // die.
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
  void claim_below(const Folders& place);
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
