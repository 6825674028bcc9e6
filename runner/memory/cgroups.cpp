#include "memory/cgroups.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <sys/stat.h>

#include "memory/proc_file.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct Version {
  const char* type;  // in mountinfo
  const char* name;
  const char* limit;
  const char* throttle;
  const char* usage;
  const char* inactive_file;  // in memory.stat
  const char* active_file;
};

constexpr Version v1{
    "cgroup",           "v1", "memory.limit_in_bytes", nullptr, "memory.usage_in_bytes", "total_inactive_file",
    "total_active_file"};
constexpr Version v2{"cgroup2", "v2", "memory.max", "memory.high", "memory.current", "inactive_file", "active_file"};

constexpr int64_t no_limit = int64_t{1} << 62;  // v1 says "none" with the largest multiple of a page

struct Mount {
  fs::path root, point;  // which part of the hierarchy is mounted, and where
};

bool lists(std::string_view options, std::string_view option) {
  while (!options.empty()) {
    const std::string_view item = options.substr(0, options.find(','));
    if (item == option) return true;
    options.remove_prefix(std::min(item.size() + 1, options.size()));
  }
  return false;
}

// Spaces and the like are octal in mountinfo: "\040".
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size() &&
                       std::all_of(&text[i + 1], &text[i + 4], [](char c) { return c >= '0' && c <= '7'; });
    plain +=
        octal ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')) : text[i];
    if (octal) i += 3;
  }
  return plain;
}

// "32 31 0:29 /root /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory"
std::optional<Mount> find_mount(const std::string& mountinfo, const Version& version) {
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::string id, parent, device, root, point, type, source, options;
    std::istringstream(line) >> id >> parent >> device >> root >> point;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    if (type == version.type && (&version == &v2 || lists(options, "memory")))
      return Mount{unescaped(root), unescaped(point)};
  }
  return std::nullopt;
}

// "4:memory:/a/b" for v1, "0::/a/b" for v2.
std::optional<fs::path> find_path(const std::string& cgroup, const Version& version) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool found = &version == &v2 ? line.starts_with("0::") : lists(controllers, "memory");
    if (found) return line.substr(second + 1);
  }
  return std::nullopt;
}

// nullopt for "max", for what is no number, and where there is no such file.
std::optional<int64_t> bound_in(const fs::path& file) {
  const auto bytes = number_after(read_proc_file(file).value_or(""), "");
  return bytes >= 0 && bytes < no_limit ? bytes : std::nullopt;
}

std::string id_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return "";
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

std::optional<MemoryCgroup> read_cgroup(const fs::path& point, const fs::path& folder, const Version& version) {
  const auto usage = number_after(read_proc_file(folder / version.usage).value_or(""), "");
  if (!usage || !read_proc_file(folder / version.limit)) return std::nullopt;
  const std::string stat = read_proc_file(folder / "memory.stat").value_or("");
  const int64_t file_pages =
      number_after(stat, version.inactive_file).value_or(0) + number_after(stat, version.active_file).value_or(0);
  MemoryCgroup cgroup;
  cgroup.folder = folder;
  cgroup.id = id_of(folder);
  cgroup.limit_bytes = bound_in(folder / version.limit);
  cgroup.name =
      "cgroup /" + (folder == point ? "" : folder.lexically_relative(point).string()) + " (" + version.name + ")";
  if (version.throttle != nullptr) cgroup.throttle_bytes = bound_in(folder / version.throttle);
  cgroup.used_bytes = std::max<int64_t>(*usage - file_pages, 0);
  return cgroup;
}

// In v1 a parent without use_hierarchy bounds and counts only its own processes.
bool counts_children(const fs::path& folder) {
  return number_after(read_proc_file(folder / "memory.use_hierarchy").value_or("1"), "") != 0;
}

// From the mounted root down to the process's own.
std::vector<fs::path> chain_of(const fs::path& root, const Mount& mount, const fs::path& path) {
  std::vector<fs::path> chain = {root / mount.point.relative_path()};
  // Inside a container only a part of the hierarchy may be mounted; a path outside of it means its root.
  const fs::path below = path.lexically_relative(mount.root);
  if (below.empty() || *below.begin() == "..") return chain;
  for (const fs::path& part : below) {
    if (!part.empty() && part != ".") chain.push_back(chain.back() / part);
  }
  return chain;
}

struct Hierarchy {
  fs::path point;
  std::vector<fs::path> folders;  // the process's own first, up to the first that does not bound it
};

Hierarchy hierarchy(const fs::path& root, const fs::path& process, const Version& version) {
  const auto mount = find_mount(read_proc_file(root / "proc/self/mountinfo").value_or(""), version);
  const auto path = find_path(read_proc_file(process / "cgroup").value_or(""), version);
  if (!mount || !path) return {};
  std::vector<fs::path> chain = chain_of(root, *mount, *path);
  Hierarchy found{chain.front(), {}};
  std::reverse(chain.begin(), chain.end());
  const auto end =
      std::find_if(chain.begin() + 1, chain.end(), [](const fs::path& folder) { return !counts_children(folder); });
  chain.erase(end, chain.end());
  found.folders = std::move(chain);
  return found;
}

}  // namespace

std::vector<fs::path> memory_cgroup_folders(const std::string& root, int64_t pid) {
  const fs::path process = fs::path(root) / "proc" / (pid == 0 ? "self" : std::to_string(pid));
  std::vector<fs::path> folders = hierarchy(root, process, v1).folders;
  for (fs::path& folder : hierarchy(root, process, v2).folders) folders.push_back(std::move(folder));
  return folders;
}

std::vector<MemoryCgroup> read_memory_cgroups(const std::vector<fs::path>& folders) {
  std::vector<MemoryCgroup> cgroups;
  for (const fs::path& folder : folders) {
    for (const Version* version : {&v1, &v2}) {
      if (auto cgroup = read_cgroup(folder.parent_path(), folder, *version)) cgroups.push_back(*std::move(cgroup));
    }
  }
  return cgroups;
}

std::vector<MemoryCgroup> memory_cgroups(const std::string& root) {
  std::vector<MemoryCgroup> cgroups;
  for (const Version* version : {&v1, &v2}) {
    const Hierarchy found = hierarchy(root, fs::path(root) / "proc/self", *version);
    for (const fs::path& folder : found.folders) {
      if (auto cgroup = read_cgroup(found.point, folder, *version)) cgroups.push_back(*std::move(cgroup));
    }
  }
  return cgroups;
}

}  // namespace headroom
