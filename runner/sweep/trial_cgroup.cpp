#include "sweep/trial_cgroup.hpp"

#include <fstream>
#include <unistd.h>

#include "memory/cgroups.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

bool write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  return stream.good();
}

fs::path folder_of_cgroup(const std::string& name) {
  const auto own = memory_cgroup_folders();
  return own.empty() ? fs::path() : own.front() / name;
}

// What a cgroup is charged beside a trainer's own memory: its supervisor, page tables, pages of files in use; and a run
// keeps to 0.9 of what its cgroup leaves.
int64_t bound_for(int64_t limit_bytes) { return limit_bytes + limit_bytes / 4 + (int64_t{256} << 20); }

bool set_bound(const fs::path& folder, int64_t bytes) {
  const bool v1 = fs::exists(folder / "memory.limit_in_bytes");
  return write(folder / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(bytes));
}

}  // namespace

fs::path make_trial_cgroup(const std::string& name, int64_t limit_bytes) {
  const fs::path folder = folder_of_cgroup(name);
  std::error_code error;
  if (folder.empty()) return {};
  if (fs::exists(folder.parent_path() / "cgroup.subtree_control"))
    write(folder.parent_path() / "cgroup.subtree_control", "+memory");
  fs::create_directory(folder, error);
  if (error) return {};
  if (set_bound(folder, bound_for(limit_bytes))) return folder;
  rmdir(folder.c_str());
  return {};
}

void remove_trial_cgroup(const std::string& name) {
  if (const fs::path folder = folder_of_cgroup(name); !folder.empty()) rmdir(folder.c_str());
}

}  // namespace headroom
