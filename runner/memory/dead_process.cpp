#include <cstring>
#include <string>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "memory/printable.hpp"
#include "memory/proc_file.hpp"
#include "memory/process_tree.hpp"

namespace headroom {

namespace {

// PIDFD_GET_INFO of <linux/pidfd.h>, which is younger than most installed headers. A pidfd from before the end tells
// the status even after the parent has taken it, since Linux 6.15.
struct PidfdInfo {
  uint64_t mask = 0, cgroup = 0;
  uint32_t pid = 0, group = 0, parent = 0;
  uint32_t users_and_groups[8] = {};
  int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
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
  if (info.si_code == CLD_EXITED) return info.si_status << 8;
  return info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}

// The last field of the stat file, as long as nobody took the status.
std::optional<int> from_zombie(int64_t pid) {
  const std::string stat = read_proc_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
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
