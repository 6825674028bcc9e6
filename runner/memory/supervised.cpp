#include "memory/supervised.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/proc_file.hpp"

namespace headroom {

namespace {

int supervisor_file = -1;

std::string name_of(const char* name_and_sign) { return {name_and_sign, std::strlen(name_and_sign) - 1}; }

// The number behind an environment variable's NAME=.
template <class Number>
bool read_variable(const char* name_and_sign, Number& number) {
  const char* text = std::getenv(name_of(name_and_sign).c_str());
  return text != nullptr && std::from_chars(text, text + std::strlen(text), number).ec == std::errc();
}

// The descriptor is ours alone: what we start does not get it.
int take_supervisor_file() {
  int file = -1;
  const bool given = read_variable(supervisor_variable, file);
  unsetenv(name_of(supervisor_variable).c_str());
  // The number may come from an environment that was passed on: only a pipe can be the supervisor's.
  struct stat info {};
  if (!given || file <= STDERR_FILENO || fstat(file, &info) != 0 || !S_ISFIFO(info.st_mode)) return -1;
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
}

// SIGTERM when `parent` dies; now, if it died before the signal was requested.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) std::raise(SIGTERM);
}

// RLIMIT_DATA counts what is mapped and never written to, which a library's bss and an allocator's blocks mostly are.
// So the limit that we began under rises by that much: what may be written to is as before.
void leave_untouched_out_of_start_limit() {
  const auto users = users_data_limit();
  rlimit bound{};
  getrlimit(RLIMIT_DATA, &bound);
  const std::string status = read_proc_file("/proc/self/status").value_or("");
  const auto mapped = bytes_after(status, "VmData:"), written = bytes_after(status, "RssAnon:");
  if (!users || bound.rlim_cur >= *users || !mapped || !written || *mapped <= *written) return;
  bound.rlim_cur = std::min<rlim_t>({bound.rlim_cur + static_cast<rlim_t>(*mapped - *written), *users, bound.rlim_max});
  setrlimit(RLIMIT_DATA, &bound);
}

}  // namespace

void raise_oom_score(int rise) {
  constexpr const char* file = "/proc/self/oom_score_adj";
  int present = 0;
  std::ifstream(file) >> present;
  const int raised = std::min(999, std::max(0, present) + rise);  // 1000 are those whose loss costs nothing
  if (raised > present) std::ofstream(file) << raised;
}

void become_supervised() {
  leave_untouched_out_of_start_limit();
  pid_t parent = getppid();  // whoever it is where no supervisor started us
  read_variable(parent_variable, parent);
  unsetenv(name_of(parent_variable).c_str());
  end_with(parent);
  std::signal(SIGHUP, SIG_IGN);
  raise_oom_score(trainer_oom_rise);
  supervisor_file = take_supervisor_file();
  if (supervisor_file < 0) return;
  [[maybe_unused]] const ssize_t written = write(supervisor_file, &begun_mark, 1);
}

void become_trial() {
  pid_t sweep = 0;
  if (!read_variable(sweep_variable, sweep)) return;
  // What the trial starts is to inherit its cgroup, and not these variables.
  if (const char* cgroup = std::getenv(name_of(cgroup_variable).c_str()))
    std::ofstream(std::filesystem::path(cgroup) / "cgroup.procs") << getpid();
  unsetenv(name_of(cgroup_variable).c_str());
  unsetenv(name_of(sweep_variable).c_str());
  end_with(sweep);
}

std::optional<uint64_t> users_data_limit() {
  uint64_t bytes = 0;
  return read_variable(data_limit_variable, bytes) ? std::optional(bytes) : std::nullopt;
}

void lift_start_limit() {
  const auto users = users_data_limit();
  rlimit bound{};
  getrlimit(RLIMIT_DATA, &bound);
  if (!users) return;
  bound.rlim_cur = std::min<rlim_t>(*users, bound.rlim_max);
  setrlimit(RLIMIT_DATA, &bound);
}

void tell_supervisor_run_folder(const std::filesystem::path& folder) {
  if (supervisor_file < 0) return;
  const std::string path = folder.string();
  [[maybe_unused]] const ssize_t written = write(supervisor_file, path.data(), path.size());
  close(supervisor_file);
  supervisor_file = -1;
}

}  // namespace headroom
