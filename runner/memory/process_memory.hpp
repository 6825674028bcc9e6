// What this process holds, and what its machine or cgroup holds, with the log line that shows both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

// U: what this process holds, RssAnon + RssShmem, and its children at the last look; read so cheaply that an allocator
// may ask. [any] Some 2 us; allocates nothing and takes no lock, so it may be called from inside an allocation. The
// kernel's counters lag by up to half a megabyte.
int64_t held_bytes();
int64_t own_held_bytes();  // without the children

// What the children hold (child_watch.hpp). [any]
int64_t children_bytes();
void set_children_bytes(int64_t bytes);

struct DeviceMemory {
  int64_t allocated_bytes = 0;  // by tensors
  int64_t reserved_bytes = 0;   // by the caching allocator, allocated_bytes included
};

struct MemoryUsage {
  int64_t process_bytes = 0;       // RssAnon + RssShmem + RssFile of this process
  int64_t system_used_bytes = 0;   // of the machine, or of the cgroup where its limit is the smaller one
  int64_t system_total_bytes = 0;  // the machine's memory or that cgroup's limit
  bool total_is_cgroup = false;
  std::optional<DeviceMemory> device = std::nullopt;  // for whoever computes on one to fill in
};

// Reads /proc and the cgroup files (v1, v2, hybrid; every ancestor). `root` replaces "/" in tests. [any]
MemoryUsage read_memory_usage(const std::string& root = "/");

// "[Step 100] Memory - Process: 812.4MB (3.3%), System: 5.1/24.0GB (21.2%)", behind it where there is a device ", GPU:
// 1.2GB allocated, 1.5GB reserved": MB and GB are 2^20 and 2^30, as users know them.
std::string memory_line(const std::string& label, const MemoryUsage& usage);

}  // namespace headroom
