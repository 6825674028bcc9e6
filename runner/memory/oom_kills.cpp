#include "memory/oom_kills.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"

namespace headroom {

namespace {

// The number right behind `key`, 0 without one.
int64_t number_behind(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  int64_t number = 0;
  if (at != std::string_view::npos) std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number);
  return number;
}

// The kernel's id of the first process-id namespace, where our ids are those of the log.
bool ids_are_the_kernels() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/pid", error) == "pid:[4026531836]";
}

}  // namespace

bool parse_kill(std::string_view line, std::string& cgroup, LoggedKill& kill) {
  // "oom-kill:constraint=CONSTRAINT_MEMCG,...,oom_memcg=/job,task_memcg=/job/step,task=python3,pid=77,uid=1000"
  if (line.find("oom-kill:constraint=") != std::string_view::npos) {
    constexpr std::string_view key = ",task_memcg=";
    const size_t at = line.find(key);
    cgroup.clear();
    if (at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + key.size());
      cgroup = rest.substr(0, rest.find(",task="));
    }
    return false;
  }
  // "Killed process 77 (python3) total-vm:123kB, anon-rss:45kB, file-rss:6kB, shmem-rss:7kB, ...": in KiB.
  const int64_t pid = number_behind(line, "Killed process ");
  if (pid <= 0) return false;
  kill.pid = pid;
  kill.held_bytes = (number_behind(line, "anon-rss:") + number_behind(line, "shmem-rss:")) * 1024;
  kill.victims_cgroup = cgroup;
  return true;
}

KernelLog::KernelLog() {
  if (!ids_are_the_kernels()) return;
  file_ = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file_ >= 0) lseek(file_, 0, SEEK_END);
}

KernelLog::~KernelLog() {
  if (file_ >= 0) close(file_);
}

std::vector<LoggedKill> KernelLog::read(int patience_ms) {
  std::vector<LoggedKill> kills;
  if (file_ < 0) return kills;
  std::array<char, 8192> line;  // one read is one line; EPIPE: some were overwritten before we came
  for (;;) {
    const ssize_t length = ::read(file_, line.data(), line.size());
    if (length < 0 && (errno == EPIPE || errno == EINTR)) continue;
    pollfd more{.fd = file_, .events = POLLIN, .revents = 0};
    if (length < 0 && errno == EAGAIN && kills.empty() && patience_ms > 0 && poll(&more, 1, patience_ms) > 0) {
      // Another line may have ended the wait; halving it each time lets it end.
      patience_ms /= 2;
      continue;
    }
    if (length <= 0) return kills;
    LoggedKill kill;
    if (parse_kill({line.data(), static_cast<size_t>(length)}, cgroup_, kill)) kills.push_back(std::move(kill));
  }
}

namespace {

namespace fs = std::filesystem;

std::optional<int64_t> number_in(const fs::path& file, std::string_view key) {
  const auto text = read_proc_file(file);
  return text ? number_after(*text, key) : std::nullopt;
}

// Kills of processes of this very cgroup: v1, v2, v2 before Linux 5.2 (there with those of the cgroups below).
std::optional<int64_t> kills_in(const fs::path& folder) {
  if (const auto count = number_in(folder / "memory.oom_control", "oom_kill")) return count;
  if (const auto count = number_in(folder / "memory.events.local", "oom_kill")) return count;
  return number_in(folder / "memory.events", "oom_kill");
}

// Kills in a v2 cgroup and all below it.
std::optional<int64_t> kills_below(const fs::path& folder) { return number_in(folder / "memory.events", "oom_kill"); }

// How often its own limit was met.
int64_t limit_hits(const fs::path& folder) {
  // In v2 the allocations that were about to fail there, in v1 how often the use met the limit.
  for (const char* file : {"memory.events.local", "memory.events"}) {
    if (const auto count = number_in(folder / file, "oom")) return *count;
  }
  return number_in(folder / "memory.failcnt", "").value_or(0);
}

std::optional<int64_t> limit_of(const fs::path& folder) {
  // v1 says "none" with the largest multiple of a page.
  constexpr int64_t no_limit = int64_t{1} << 62;
  auto limit = number_in(folder / "memory.max", "");
  if (!limit) limit = number_in(folder / "memory.limit_in_bytes", "");
  return limit < no_limit ? limit : std::nullopt;
}

std::optional<int64_t> system_kills(const fs::path& root) { return number_in(root / "proc/vmstat", "oom_kill"); }

int64_t machine_bytes(const fs::path& root) { return number_in(root / "proc/meminfo", "MemTotal:").value_or(0) * 1024; }

}  // namespace

OomKills::OomKills(std::string root, bool with_log)
    : root_(std::move(root)), system_first_(system_kills(root_).value_or(0)) {
  if (with_log) log_.emplace();
}

std::optional<OomKills::Place> OomKills::place_of(int64_t pid, std::optional<Place> before) {
  const fs::path file = fs::path(root_) / "proc" / (pid == 0 ? "self" : std::to_string(pid)) / "cgroup";
  const auto text = read_proc_file(file);
  if (!text || text->empty()) return before;
  const auto known = known_.find(*text);
  if (known == known_.end()) {
    Folders folders = memory_cgroup_folders(root_, pid);
    for (const fs::path& folder : folders) note(folder);
    places_.push_back(std::move(folders));
  }
  const Place now = known == known_.end() ? known_.emplace(*text, places_.size() - 1).first->second : known->second;
  // All folders of an ancestor are among those of a cgroup below it.
  const auto is_above = [&](const Folders& folders) {
    return std::all_of(places_[now].begin(), places_[now].end(), [&](const fs::path& folder) {
      return std::find(folders.begin(), folders.end(), folder) != folders.end();
    });
  };
  return before && is_above(places_[*before]) ? before : now;
}

void OomKills::note(const fs::path& folder) {
  const auto kills = kills_in(folder);
  // The first reading of a folder stays: later ones are compared with it.
  if (!kills || counters_.contains(folder)) return;
  counters_[folder] = {.first = *kills,
                       .claimed = 0,
                       .first_below = kills_below(folder).value_or(0),
                       .claimed_below = 0,
                       .first_hits = limit_hits(folder)};
}

void OomKills::settle() {
  system_claimed_ = std::max(system_claimed_, system_settling_);
  system_settling_ = system_rise();
  recently_logged_ = 0;
}

int64_t OomKills::system_rise() const { return system_kills(root_).value_or(0) - system_first_; }

std::optional<OomKill> OomKills::claim(int64_t pid, std::optional<Place> place) {
  // The log decides first, because it alone names the process.
  read_log(pid);
  if (auto kill = from_log(pid, place)) return kill;
  // Without a counter of its own the next one above decides, then the whole system's.
  if (!place || !is_counted(places_[*place])) {
    if (auto kill = place ? from_counters(places_[*place]) : std::nullopt) return kill;
    return from_system();
  }
  return from_counters(places_[*place]);
}

// Its own counter can be compared: then there was no kill when it did not rise.
bool OomKills::is_counted(const Folders& place) const {
  const auto own =
      std::find_if(place.begin(), place.end(), [&](const fs::path& folder) { return counters_.contains(folder); });
  return own != place.end() && kills_in(*own);
}

int64_t OomKills::unclaimed_in_system() const { return system_rise() - system_claimed_ - recently_logged_; }

void OomKills::read_log(int64_t pid) {
  constexpr int patience_ms = 100;  // the kernel counts, kills, and writes its line, in this order
  if (!log_) return;
  const auto keep = [this](std::vector<LoggedKill> kills) {
    for (LoggedKill& kill : kills) {
      logged_.insert_or_assign(kill.pid, std::move(kill));
      ++recently_logged_;
    }
  };
  keep(log_->read());
  // A kill was counted that no line tells of: only then is it worth waiting for one.
  if (!logged_.contains(pid) && unclaimed_in_system() > 0) keep(log_->read(patience_ms));
}

std::optional<OomKill> OomKills::from_log(int64_t pid, std::optional<Place> place) {
  const auto found = logged_.find(pid);
  if (found == logged_.end()) return std::nullopt;
  OomKill kill{.held_bytes = found->second.held_bytes, .certain = true};
  kill.evidence = "the kernel's log names process " + std::to_string(pid);
  logged_.erase(found);
  // Claimed for the counters as well, so that no other death claims the same kill.
  ++system_claimed_;
  recently_logged_ = std::max<int64_t>(recently_logged_ - 1, 0);
  if (place) {
    const Folders& folders = places_[*place];
    const auto own = std::find_if(folders.begin(), folders.end(),
                                  [&](const fs::path& folder) { return counters_.contains(folder); });
    if (own != folders.end()) ++counters_[*own].claimed;
    claim_below(folders);
    name_limit(folders, kill);
  }
  return kill;
}

// Every cgroup of the place has counted the kill with those below it, wherever it was claimed. Otherwise a death in
// another cgroup below, which is gone, would claim it again.
void OomKills::claim_below(const Folders& place) {
  for (const fs::path& folder : place) {
    if (const auto found = counters_.find(folder); found != counters_.end()) ++found->second.claimed_below;
  }
}

std::optional<OomKill> OomKills::from_counters(const Folders& place) {
  bool own_is_gone = false;
  for (const fs::path& folder : place) {
    const auto found = counters_.find(folder);
    if (found == counters_.end()) continue;
    Counter& counter = found->second;
    const auto now = own_is_gone ? kills_below(folder) : kills_in(folder);
    // A cgroup that was removed took its counter with it. The next above still counts what happened below it.
    if (!now) {
      own_is_gone = true;
      continue;
    }
    const int64_t rise = *now - (own_is_gone ? counter.first_below : counter.first);
    const int64_t claimed = own_is_gone ? counter.claimed_below : counter.claimed;
    // Kills of this cgroup whose victims the log names, and which these have not claimed yet.
    const auto reserved = std::count_if(logged_.begin(), logged_.end(), [&](const auto& kill) {
      return folder.string().ends_with(kill.second.victims_cgroup);
    });
    if (rise - claimed - reserved <= 0) return std::nullopt;
    if (!own_is_gone) ++counter.claimed;
    claim_below(place);
    ++system_claimed_;
    OomKill kill{.certain = !own_is_gone};
    kill.evidence =
        "its cgroup " + folder.string() + " counted " + std::to_string(rise) + (rise == 1 ? " kill" : " kills");
    if (own_is_gone) kill.evidence = "a kill was counted below " + folder.string() + ", its own cgroup is gone";
    name_limit(place, kill);
    return kill;
  }
  return std::nullopt;
}

std::optional<OomKill> OomKills::from_system() {
  if (unclaimed_in_system() <= 0) return std::nullopt;
  ++system_claimed_;
  OomKill kill;
  kill.evidence = "no counter of its own cgroup could be compared, but the whole system counted a kill";
  return kill;
}

// The nearest cgroup whose limit was met since it was first seen; without one the limit is the machine's memory.
void OomKills::name_limit(const Folders& place, OomKill& kill) const {
  for (const fs::path& folder : place) {
    const auto found = counters_.find(folder);
    if (found == counters_.end() || limit_hits(folder) == found->second.first_hits) continue;
    if (const auto limit = limit_of(folder)) {
      kill.cgroup = folder;
      kill.limit_bytes = *limit;
      return;
    }
  }
  kill.limit_bytes = machine_bytes(root_);
}

}  // namespace headroom
