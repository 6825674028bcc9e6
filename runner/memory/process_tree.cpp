#include "memory/process_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "memory/proc_file.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

fs::path folder_of(int64_t pid) { return fs::path("/proc") / std::to_string(pid); }

// The text behind `key` at the beginning of a line.
std::string text_after(const std::string& text, const std::string& key) {
  size_t line = text.find(key);
  while (line != std::string::npos && line > 0 && text[line - 1] != '\n') line = text.find(key, line + 1);
  if (line == std::string::npos) return "";
  const size_t begin = text.find_first_not_of(" \t", line + key.size());
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

struct Status {
  std::string name;
  int64_t parent = 0;
  char state = '?';
  std::optional<int64_t> rss_bytes;  // none: a zombie
};

std::optional<Status> read_status(int64_t pid) {
  const auto text = read_proc_file(folder_of(pid) / "status");
  if (!text || text->empty()) return std::nullopt;
  Status status{.name = printable(text_after(*text, "Name:"), 64),
                .parent = number_after(*text, "PPid:").value_or(0),
                .state = (text_after(*text, "State:") + "?").front(),
                .rss_bytes = std::nullopt};
  if (const auto anonymous = number_after(*text, "RssAnon:"))
    status.rss_bytes = (*anonymous + number_after(*text, "RssShmem:").value_or(0)) * 1024;
  return status;
}

struct Pss {
  int64_t bytes = 0, shared_bytes = 0;  // the second among the first
};

// Anonymous and shared memory; the whole of it before Linux 5.4, which does not tell them from file pages.
std::optional<Pss> read_pss(int64_t pid) {
  const auto text = read_proc_file(folder_of(pid) / "smaps_rollup");
  if (!text) return std::nullopt;
  const int64_t shared = bytes_after(*text, "Pss_Shmem:").value_or(0);
  if (const auto anonymous = bytes_after(*text, "Pss_Anon:")) return Pss{*anonymous + shared, shared};
  if (const auto all = bytes_after(*text, "Pss:")) return Pss{*all, 0};
  return std::nullopt;
}

// It is somebody else's, or this kernel has no such file. Who is about to end has none either, and does not count.
bool pss_is_refused(int64_t pid) {
  const int file = open((folder_of(pid) / "smaps_rollup").c_str(), O_RDONLY | O_CLOEXEC);
  const int error = errno;
  if (file >= 0) close(file);
  std::error_code ignored;
  return file < 0 && (error == EACCES || error == EPERM || (error == ENOENT && fs::exists(folder_of(pid), ignored)));
}

// Whether it has not begun another program since it was made (PF_FORKNOEXEC of the kernel).
bool runs_its_parents_program(int64_t pid) {
  const std::string stat = read_proc_file(folder_of(pid) / "stat").value_or("");
  // The name may hold blanks and ')': the last one ends it. The flags are the seventh field behind it.
  size_t field = stat.rfind(')');
  for (int i = 0; i < 7 && field != std::string::npos; ++i) field = stat.find(' ', field + 1);
  return field != std::string::npos && (number_after(stat.substr(field + 1), "").value_or(0) & 0x40) != 0;
}

std::string read_command(int64_t pid) {
  std::string words = read_proc_file(folder_of(pid) / "cmdline").value_or("");
  while (words.ends_with('\0')) words.pop_back();
  return printable(words, 200);
}

bool is_readable(int file) {
  pollfd ready{.fd = file, .events = POLLIN, .revents = 0};
  return file >= 0 && poll(&ready, 1, 0) > 0;
}

}  // namespace

ProcessTree::ProcessTree(int64_t root) : root_(root) {}

ProcessTree::~ProcessTree() {
  for (const auto& [pid, member] : members_) {
    if (member.process.file >= 0) close(member.process.file);
  }
}

void ProcessTree::look() {
  find_new();
  for (auto& [pid, member] : members_) measure(member);
}

// A process stays below `root` as long as it lives, so everyone is judged once; and parents are found before children.
void ProcessTree::find_new() {
  std::set<int64_t> present, unknown;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int64_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    present.insert(pid);
    if (pid != root_ && !members_.contains(pid) && !outsiders_.contains(pid)) unknown.insert(pid);
  }
  // Process ids are reused: the next process with that id is judged again.
  std::erase_if(outsiders_, [&](int64_t pid) { return !present.contains(pid); });
  std::map<int64_t, WatchedProcess> found_now;
  for (const int64_t pid : unknown) {
    if (const auto status = read_status(pid); status && status->state != 'Z')
      found_now[pid] = {.pid = pid, .parent = status->parent, .name = status->name};
  }
  // A child may have the smaller id, so one pass does not find all.
  for (bool found = true; found;) {
    found = false;
    for (auto entry = found_now.begin(); entry != found_now.end();) {
      const int64_t parent = entry->second.parent;
      const bool is_ours = parent == root_ || members_.contains(parent);
      if (is_ours) add(std::move(entry->second));
      found |= is_ours;
      entry = is_ours ? found_now.erase(entry) : std::next(entry);
    }
  }
  // Whose parent came after the list was made may be ours yet.
  for (const auto& [pid, process] : found_now) {
    if (process.parent == 0 || present.contains(process.parent)) outsiders_.insert(pid);
  }
}

// It may end before it is measured, so it comes with what was read of it.
void ProcessTree::add(WatchedProcess process) {
  // After a fork both share their pages, so the parent's PSS falls while its RSS stays.
  if (const auto found = members_.find(process.parent); found != members_.end()) found->second.has_new_child = true;
  const int64_t pid = process.pid;
  process.command = read_command(pid);
  process.file = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  members_[pid].process = std::move(process);
}

void ProcessTree::measure(Member& member) {
  WatchedProcess& process = member.process;
  // Asked first: all that is read from here on may be of its own program.
  const bool may_be_vfork = !std::exchange(member.was_met, true) && runs_its_parents_program(process.pid);
  const auto status = read_status(process.pid);
  if (!status || status->parent == 0) return;  // it is gone, or goes just now
  process.parent = status->parent;
  if (process.name != status->name) {  // another program by now
    process.name = status->name;
    process.command = read_command(process.pid);
  }
  // A zombie keeps its last figures.
  if (!status->rss_bytes) return;
  member.rss_bytes = *status->rss_bytes;
  const auto now = Clock::now();
  if (now >= member.pss_read + (member.has_new_child ? 5 : 50) * member.pss_cost) {
    const auto pss = read_pss(process.pid);
    if (!pss && !pss_is_refused(process.pid)) return;  // about to end, or to become another program
    // A child made with vfork(), as posix_spawn() makes them, has its parent's memory until its program begins, moments
    // later. One made with fork() shares it, which PSS shows.
    if (may_be_vfork && (!pss || pss->bytes > member.rss_bytes / 4 * 3)) return;
    process.by_rss = !pss;
    member.pss_bytes = pss ? pss->bytes : member.rss_bytes;
    process.shared_bytes = pss ? pss->shared_bytes : 0;
    member.rss_at_pss = member.rss_bytes;
    member.pss_read = now;
    member.pss_cost = Clock::now() - now;
    member.has_new_child = false;
  }
  process.bytes = std::max<int64_t>(member.pss_bytes + member.rss_bytes - member.rss_at_pss, 0);
}

std::vector<ProcessTree::Death> ProcessTree::take_deaths() {
  std::vector<Death> deaths;
  for (auto entry = members_.begin(); entry != members_.end();) {
    WatchedProcess& process = entry->second.process;
    // Linux before 5.3 has no pidfds: there the status file tells.
    const auto status = process.file < 0 ? read_status(process.pid) : std::nullopt;
    const bool ended = process.file >= 0 ? is_readable(process.file) : (!status || status->state == 'Z');
    if (!ended) {
      ++entry;
      continue;
    }
    deaths.push_back({process, status_of_dead(process.pid, process.file)});
    if (process.file >= 0) close(process.file);
    entry = members_.erase(entry);
  }
  return deaths;
}

std::vector<WatchedProcess> ProcessTree::processes() const {
  std::vector<WatchedProcess> list;
  for (const auto& [pid, member] : members_) list.push_back(member.process);
  return list;
}

namespace {

// PIDFD_GET_INFO of <linux/pidfd.h>, which is younger than most installed headers. A pidfd from before the end tells
// the status even after the parent has taken it, since Linux 6.15.
struct PidfdInfo {
  uint64_t mask = 0, cgroup = 0;
  uint32_t pid = 0, group = 0, parent = 0;
  uint32_t users_and_groups[8] = {};
  int32_t exit_code = 0;
};
// PIDFD_INFO_SIZE_VER0.
static_assert(sizeof(PidfdInfo) == 64);
// PIDFD_INFO_EXIT.
constexpr uint64_t exit_is_told = uint64_t{1} << 3;

std::optional<int> from_pidfd(int pidfd) {
  if (pidfd < 0) return std::nullopt;
  PidfdInfo info;
  info.mask = exit_is_told;
  if (ioctl(pidfd, _IOWR(0xFF, 11, PidfdInfo), &info) != 0 || (info.mask & exit_is_told) == 0) return std::nullopt;
  return info.exit_code;
}

std::optional<int> as_parent(int64_t pid) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  // As waitpid() packs it: the exit code in the second byte, or the signal, with 0x80 for a core dump.
  if (info.si_code == CLD_EXITED) return info.si_status << 8;
  return info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}

// The last field of the stat file, as long as nobody took the status.
std::optional<int> from_zombie(int64_t pid) {
  const std::string stat = read_proc_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
  // The name may hold blanks and ')': the last one ends it.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || stat.compare(name_end, 3, ") Z") != 0) return std::nullopt;
  const auto code = number_after(stat.substr(stat.find_last_of(' ') + 1), "");
  return code ? std::optional(static_cast<int>(*code)) : std::nullopt;
}

}  // namespace

std::string process_name(int64_t pid) {
  std::string name = read_proc_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  while (name.ends_with('\n')) name.pop_back();
  return printable(name, 64);
}

std::optional<int> status_of_dead(int64_t pid, int pidfd) {
  if (const auto status = as_parent(pid)) return status;
  if (const auto status = from_zombie(pid)) return status;
  return from_pidfd(pidfd);  // in this order: a zombie whose status was taken meanwhile has told its pidfd
}

}  // namespace headroom
