#include "neighbour.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace headroom {

namespace {

constexpr int64_t piece = int64_t{1} << 20;

void sleep_for(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

void take(int64_t bytes) {
  mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

}  // namespace

Neighbour::Neighbour(const KernelCgroup& cgroup, Growth growth) : id_(fork()) {
  if (id_ != 0) return;
  FILE* procs = std::fopen((cgroup.folder() / "cgroup.procs").c_str(), "w");
  if (procs == nullptr || std::fprintf(procs, "%d", getpid()) < 0 || std::fclose(procs) != 0) _exit(1);
  sleep_for(growth.wait_seconds);
  if (growth.seconds == 0) {
    take(growth.bytes);
  } else {
    for (int64_t held = 0; held < growth.bytes; held += piece) {
      take(std::min(piece, growth.bytes - held));
      sleep_for(growth.seconds * static_cast<double>(piece) / static_cast<double>(growth.bytes));
    }
  }
  pause();
  _exit(0);
}

Neighbour::~Neighbour() {
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
}

}  // namespace headroom
