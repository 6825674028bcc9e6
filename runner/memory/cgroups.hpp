// The memory cgroups that bound a process: its own and every ancestor. cgroup v1, v2, and both mounted at once
// (hybrid).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct MemoryCgroup {
  std::filesystem::path folder;
  std::string name;                       // "cgroup /job_7 (v2)": the path below the mount
  std::string id;                         // "device:inode" of its folder: the same in every namespace of this machine
  std::optional<int64_t> limit_bytes;     // nullopt: none
  std::optional<int64_t> throttle_bytes;  // memory.high: above it the kernel reclaims and slows down, but kills nobody
  int64_t used_bytes = 0;       // what the kernel cannot drop at once: usage less file pages and v2's slab_reclaimable
  int64_t anonymous_bytes = 0;  // of them, of processes
  int64_t shared_bytes = 0;     // of them, files in memory (tmpfs, /dev/shm) and other shared memory
};

// Their folders: the process's own first, then towards the root; v1 before v2. Folders without a memory controller are
// among them. Empty when the process is gone. A hierarchy in which its own folder cannot be found is left out. `root`
// replaces "/" in tests; `pid` 0 is this process. [any]
std::vector<std::filesystem::path> memory_cgroup_folders(const std::string& root = "/", int64_t pid = 0);

// Reads these folders, in this order; those that cannot be read are left out. [any]
std::vector<MemoryCgroup> read_memory_cgroups(const std::vector<std::filesystem::path>& folders);

// Both, for this process. `unknown` receives a name for each hierarchy in which its own folder cannot be found. [any]
std::vector<MemoryCgroup> memory_cgroups(const std::string& root = "/", std::vector<std::string>* unknown = nullptr);

// Where /proc/PID/cgroup does not give the path, a cgroup's folder is found by the process in it: in a private cgroup
// namespace that path begins at the namespace's root, while an inherited mount shows the hierarchy from farther up. For
// cgroups.cpp alone.
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
