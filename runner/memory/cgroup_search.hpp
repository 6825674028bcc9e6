// Finds a cgroup's folder by the process in it, where /proc/PID/cgroup does not give the path: in a private cgroup
// namespace that path begins at the namespace's root, while an inherited mount shows the hierarchy from farther up.
// Internal to cgroups.cpp.
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
