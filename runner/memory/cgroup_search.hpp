// The folder of a process's cgroup where the kernel does not tell its path: in a private cgroup namespace
// /proc/PID/cgroup begins anew at "/", while an inherited mount shows the hierarchy from farther up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headroom {

struct CgroupSought {
  std::filesystem::path mount_point;
  int depth = 0;              // folders below the mount point
  std::filesystem::path end;  // the last parts of its path, as far as they are known; relative
  int64_t pid = 0;
};

// The folder whose cgroup.procs lists the process; nullopt: there is none, or too many folders to look into. A folder
// is kept for later calls as long as it lists the process, and that there was none for half a minute. [any]
std::optional<std::filesystem::path> find_cgroup(const CgroupSought& sought);

}  // namespace headroom
