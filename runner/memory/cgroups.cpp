#include "memory/cgroups.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

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
  const char* reclaimable;  // what the kernel keeps of names and inodes
  const char* anonymous;
  const char* shared;
};

// In v1 the total_ figures count the cgroups below too, as those of v2 always do.
constexpr Version v1{.type = "cgroup",
                     .name = "v1",
                     .limit = "memory.limit_in_bytes",
                     .throttle = nullptr,
                     .usage = "memory.usage_in_bytes",
                     .inactive_file = "total_inactive_file",
                     .active_file = "total_active_file",
                     .reclaimable = nullptr,
                     .anonymous = "total_rss",
                     .shared = "total_shmem"};
constexpr Version v2{.type = "cgroup2",
                     .name = "v2",
                     .limit = "memory.max",
                     .throttle = "memory.high",
                     .usage = "memory.current",
                     .inactive_file = "inactive_file",
                     .active_file = "active_file",
                     .reclaimable = "slab_reclaimable",
                     .anonymous = "anon",
                     .shared = "shmem"};

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
std::vector<Mount> find_mounts(const std::string& mountinfo, const Version& version) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    // Optional fields, as many as there are, end at the dash: proc_pid_mountinfo(5).
    const size_t dash = line.find(" - cgroup");
    if (dash == std::string::npos) continue;  // most lines, and the streams below are slow
    std::string id, parent, device, root, point, type, source, options;
    std::istringstream(line) >> id >> parent >> device >> root >> point;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    if (type == version.type && (&version == &v2 || lists(options, "memory")))
      mounts.push_back({unescaped(root), unescaped(point)});
  }
  return mounts;
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
  // The root of v2, and a folder without the memory controller, have no such files.
  if (!usage || !read_proc_file(folder / version.limit)) return std::nullopt;
  const auto found_stat = read_proc_file(folder / "memory.stat");
  std::error_code error;
  // There, but not readable just now: without it all pages of files would count as used.
  if (!found_stat && fs::exists(folder / "memory.stat", error)) return std::nullopt;
  const std::string stat = found_stat.value_or("");
  // Pages of tmpfs files are on the lists of anonymous memory, so they stay counted as used.
  const int64_t file_pages =
      number_after(stat, version.inactive_file).value_or(0) + number_after(stat, version.active_file).value_or(0);
  // As MemAvailable does for the machine: a run that opens many files would seem to lose room to others.
  const int64_t reclaimable = version.reclaimable != nullptr ? number_after(stat, version.reclaimable).value_or(0) : 0;
  MemoryCgroup cgroup;
  cgroup.folder = folder;
  cgroup.id = id_of(folder);
  cgroup.limit_bytes = bound_in(folder / version.limit);
  cgroup.name =
      "cgroup /" + (folder == point ? "" : folder.lexically_relative(point).string()) + " (" + version.name + ")";
  if (version.throttle != nullptr) cgroup.throttle_bytes = bound_in(folder / version.throttle);
  cgroup.used_bytes = std::max<int64_t>(*usage - file_pages - reclaimable, 0);
  cgroup.anonymous_bytes = number_after(stat, version.anonymous).value_or(0);
  cgroup.shared_bytes = number_after(stat, version.shared).value_or(0);
  return cgroup;
}

// In v1 a parent without use_hierarchy bounds and counts only its own processes.
bool counts_children(const fs::path& folder) {
  return number_after(read_proc_file(folder / "memory.use_hierarchy").value_or("1"), "") != 0;
}

// How many folders above the root of the cgroup namespace a path begins: "/../../a" -> 2.
int levels_up(const fs::path& path) {
  const fs::path parts = path.relative_path();
  const auto end = std::find_if(parts.begin(), parts.end(), [](const fs::path& part) { return part != ".."; });
  return static_cast<int>(std::distance(parts.begin(), end));
}

fs::path without_levels_up(const fs::path& path) {
  fs::path rest;
  for (const fs::path& part : path.relative_path()) {
    if (part != "..") rest /= part;
  }
  return rest;
}

// The path below the mount; nullopt where it is outside.
std::optional<fs::path> below(const Mount& mount, const fs::path& path) {
  const auto [root, part] = std::mismatch(mount.root.begin(), mount.root.end(), path.begin(), path.end());
  if (root != mount.root.end()) return std::nullopt;
  fs::path rest;
  std::for_each(part, path.end(), [&](const fs::path& name) { rest /= name; });
  return rest;
}

// From the mounted root down to the process's own.
std::vector<fs::path> chain_of(const fs::path& point, const fs::path& path_below) {
  std::vector<fs::path> chain = {point};
  for (const fs::path& part : path_below) {
    if (!part.empty() && part != ".") chain.push_back(chain.back() / part);
  }
  return chain;
}

struct Hierarchy {
  fs::path point;
  std::vector<fs::path> folders;  // the process's own first, up to the first that does not bound it
  bool hidden = false;            // the process's own cannot be found: `folders` has only ancestors, if any
};

class Finder {
 public:
  Finder(const fs::path& root, int64_t pid, const Version& version)
      : root_(root),
        pid_(pid == 0 ? ::getpid() : pid),
        version_(version),
        mounts_(find_mounts(read_proc_file(root / "proc/self/mountinfo").value_or(""), version)) {
    const fs::path process = root / "proc" / (pid == 0 ? "self" : std::to_string(pid));
    path_ = find_path(read_proc_file(process / "cgroup").value_or(""), version);
  }

  Hierarchy find() const {
    if (mounts_.empty() || !path_) return {};
    std::vector<fs::path> chain = longest_chain();
    for (auto mount = mounts_.begin(); chain.empty() && mount != mounts_.end(); ++mount) chain = searched(*mount);
    if (chain.empty()) return outside();
    Hierarchy found{chain.front(), {}};
    std::reverse(chain.begin(), chain.end());
    // The process's own cgroup bounds it in any case, those above as far as each counts the ones below.
    const auto end =
        std::find_if(chain.begin() + 1, chain.end(), [](const fs::path& folder) { return !counts_children(folder); });
    chain.erase(end, chain.end());
    found.folders = std::move(chain);
    return found;
  }

 private:
  fs::path point_of(const Mount& mount) const { return root_ / mount.point.relative_path(); }

  // Of the mounts that contain the path the one that shows most ancestors; one that is mounted over shows nothing.
  std::vector<fs::path> longest_chain() const {
    std::vector<fs::path> longest, hidden;
    for (const Mount& mount : mounts_) {
      const auto rest = below(mount, *path_);
      if (!rest) continue;
      std::vector<fs::path> chain = chain_of(point_of(mount), *rest);
      std::error_code error;  // where others mount there may be nothing to see for this user
      std::vector<fs::path>& place = fs::exists(chain.back(), error) ? longest : hidden;
      if (chain.size() > place.size()) place = std::move(chain);
    }
    return longest.empty() ? hidden : longest;
  }

  // In a mount that begins above this process's cgroup namespace.
  std::vector<fs::path> searched(const Mount& mount) const {
    // The mount begins `up` levels above the namespace's root, the path some levels above it: the names of the `down`
    // folders between the two are not known.
    const int up = levels_up(mount.root), down = up - levels_up(*path_);
    if (up == 0 || down < 0 || !without_levels_up(mount.root).empty()) return {};
    const fs::path end = without_levels_up(*path_);
    const int depth = down + static_cast<int>(std::distance(end.begin(), end.end()));
    const auto folder = find_cgroup({point_of(mount), depth, end, pid_});
    return folder ? chain_of(point_of(mount), folder->lexically_relative(point_of(mount))) : std::vector<fs::path>();
  }

  // Inside a container only a part of the hierarchy may be mounted: a path outside of it means its root.
  Hierarchy outside() const {
    for (const Mount& mount : mounts_) {
      if (levels_up(mount.root) == 0) return {point_of(mount), {point_of(mount)}};
    }
    Hierarchy found{.point = point_of(mounts_.front()), .folders = {}, .hidden = bounds_memory()};
    if (without_levels_up(mounts_.front().root).empty()) found.folders = {found.point};
    return found;
  }

  // The v2 half of a hybrid has no memory controller, and bounds nothing.
  bool bounds_memory() const {
    if (&version_ == &v1) return true;
    const auto controllers = read_proc_file(point_of(mounts_.front()) / "cgroup.controllers");
    return !controllers || (" " + *controllers).find(" memory") != std::string::npos;
  }

  fs::path root_;
  int64_t pid_;
  const Version& version_;
  std::vector<Mount> mounts_;
  std::optional<fs::path> path_;  // from the root of this process's cgroup namespace
};

Hierarchy hierarchy(const fs::path& root, int64_t pid, const Version& version) {
  return Finder(root, pid, version).find();
}

}  // namespace

std::vector<fs::path> memory_cgroup_folders(const std::string& root, int64_t pid) {
  std::vector<fs::path> folders;
  for (const Version* version : {&v1, &v2}) {
    const Hierarchy found = hierarchy(root, pid, *version);
    if (!found.hidden) folders.insert(folders.end(), found.folders.begin(), found.folders.end());
  }
  return folders;
}

std::vector<MemoryCgroup> read_memory_cgroups(const std::vector<fs::path>& folders) {
  std::vector<MemoryCgroup> cgroups;
  for (const fs::path& folder : folders) {
    // Which version a folder belongs to shows in the files that it has.
    for (const Version* version : {&v1, &v2}) {
      if (auto cgroup = read_cgroup(folder.parent_path(), folder, *version)) cgroups.push_back(*std::move(cgroup));
    }
  }
  return cgroups;
}

std::vector<MemoryCgroup> memory_cgroups(const std::string& root, std::vector<std::string>* unknown) {
  std::vector<MemoryCgroup> cgroups;
  for (const Version* version : {&v1, &v2}) {
    const Hierarchy found = hierarchy(root, 0, *version);
    if (found.hidden && unknown != nullptr) unknown->push_back("cgroup (" + std::string(version->name) + ")");
    for (const fs::path& folder : found.folders) {
      if (auto cgroup = read_cgroup(found.point, folder, *version)) cgroups.push_back(*std::move(cgroup));
    }
  }
  return cgroups;
}

}  // namespace headroom
