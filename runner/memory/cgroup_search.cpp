#include <algorithm>
#include <chrono>
#include <vector>

#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"
#include "mutex.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Rooms are read several times a second: a search is bounded, and one in vain is not repeated at each reading.
constexpr int most_folders = 20'000;
constexpr size_t most_kept = 32;
constexpr std::chrono::seconds in_vain{30};

bool lists(const fs::path& folder, int64_t pid) {
  std::string text = read_proc_file(folder / "cgroup.procs").value_or("");
  // cgroup.procs has one process id a line. The line ends on both sides keep 12 from being found in 123.
  text.insert(0, 1, '\n');
  return text.find("\n" + std::to_string(pid) + "\n") != std::string::npos;
}

bool ends_with(const fs::path& path, const fs::path& end) {
  const auto parts = std::distance(path.begin(), path.end()), wanted = std::distance(end.begin(), end.end());
  return wanted <= parts && std::equal(end.begin(), end.end(), std::next(path.begin(), parts - wanted));
}

bool suits(const fs::path& folder, const CgroupSought& sought) {
  return ends_with(folder, sought.end) && lists(folder, sought.pid);
}

// Only folders `depth` below are looked into. Folders may come and go meanwhile.
std::optional<fs::path> walk(const fs::path& folder, int depth, const CgroupSought& sought, int& folders_left) {
  if (--folders_left < 0) return std::nullopt;
  if (depth == 0) return suits(folder, sought) ? std::optional(folder) : std::nullopt;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (!entry->is_directory(gone) || entry->is_symlink(gone)) continue;
    if (auto found = walk(entry->path(), depth - 1, sought, folders_left)) return found;
  }
  return std::nullopt;
}

class Search {
 public:
  std::optional<fs::path> find(const CgroupSought& sought) {
    const MutexLock lock(mutex_);
    const auto kept = std::ranges::find_if(kept_, [&](const Kept& one) { return is_same(one.sought, sought); });
    if (kept != kept_.end()) {
      // The process may have been moved since.
      const bool holds = kept->folder ? suits(*kept->folder, sought) : Clock::now() < kept->until;
      if (holds) return kept->folder;
      kept_.erase(kept);
    }
    int folders_left = most_folders;
    auto folder = walk(sought.mount_point, sought.depth, sought, folders_left);
    if (kept_.size() >= most_kept) kept_.erase(kept_.begin());
    kept_.push_back({sought, folder, Clock::now() + in_vain});
    return folder;
  }

 private:
  struct Kept {
    CgroupSought sought;
    std::optional<fs::path> folder;
    Clock::time_point until;  // where there was none
  };
  static bool is_same(const CgroupSought& a, const CgroupSought& b) {
    return a.pid == b.pid && a.depth == b.depth && a.end == b.end && a.mount_point == b.mount_point;
  }

  Mutex mutex_;
  std::vector<Kept> kept_ GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace

std::optional<fs::path> find_cgroup(const CgroupSought& sought) {
  static Search search;
  return search.find(sought);
}

}  // namespace headroom
