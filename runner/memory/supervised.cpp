#include "memory/supervised.hpp"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace headroom {

namespace {

int supervisor_file = -1;

// The descriptor is ours alone: what we start does not get it.
int take_supervisor_file() {
  const std::string name(supervisor_variable, std::strlen(supervisor_variable) - 1);
  const char* text = std::getenv(name.c_str());
  if (text == nullptr) return -1;
  int file = -1;
  const auto parsed = std::from_chars(text, text + std::strlen(text), file);
  unsetenv(name.c_str());
  struct stat info {};
  if (parsed.ec != std::errc() || file <= STDERR_FILENO || fstat(file, &info) != 0 || !S_ISFIFO(info.st_mode))
    return -1;
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
}

}  // namespace

void become_supervised() {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGHUP, SIG_IGN);
  std::ofstream("/proc/self/oom_score_adj") << 500;
  supervisor_file = take_supervisor_file();
}

void tell_supervisor_run_folder(const std::filesystem::path& folder) {
  if (supervisor_file < 0) return;
  const std::string path = folder.string();
  [[maybe_unused]] const ssize_t written = write(supervisor_file, path.data(), path.size());
  close(supervisor_file);
  supervisor_file = -1;
}

}  // namespace headroom
