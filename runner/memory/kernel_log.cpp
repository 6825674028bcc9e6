#include "memory/kernel_log.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <unistd.h>

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
      patience_ms /= 2;
      continue;
    }
    if (length <= 0) return kills;
    LoggedKill kill;
    if (parse_kill({line.data(), static_cast<size_t>(length)}, cgroup_, kill)) kills.push_back(std::move(kill));
  }
}

}  // namespace headroom
