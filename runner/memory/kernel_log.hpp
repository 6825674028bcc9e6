// What the kernel's log says of its OOM kills, where this process may read it: the victims by process id, and what they
// held.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct LoggedKill {
  int64_t pid = 0;
  int64_t held_bytes = 0;           // anonymous and shared memory; 0: not said
  std::string victims_cgroup = {};  // below the mount; "": not said
};

// Follows /dev/kmsg from now on. Usually only root may; in a container, where ids differ from the kernel's, nobody can
// use it: then read() finds nothing. [control]
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

}  // namespace headroom
