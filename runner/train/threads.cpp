#include "train/threads.hpp"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <set>
#include <string>
#include <sys/mman.h>

#include "error.hpp"
#include "memory/limits.hpp"
#include "memory/size_text.hpp"

namespace headroom {

namespace {

int physical_cores(const std::string& root) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream siblings(root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                           "/topology/thread_siblings_list");
    std::string core;
    if (!std::getline(siblings, core)) core = "cpu" + std::to_string(cpu);
    cores.insert(core);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

// CPUs the quota allows; 0: no quota. cgroup v2's cpu.max and v1's cfs files, where this process's namespace shows
// them.
double cpu_quota(const std::string& root) {
  double quota = 0, period = 0;  // "max" reads as no number
  if (std::ifstream file(root + "sys/fs/cgroup/cpu.max"); file >> quota >> period && quota > 0 && period > 0)
    return quota / period;
  double v1_quota = -1, v1_period = 0;
  std::ifstream(root + "sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> v1_quota;
  std::ifstream(root + "sys/fs/cgroup/cpu/cpu.cfs_period_us") >> v1_period;
  return v1_quota > 0 && v1_period > 0 ? v1_quota / v1_period : 0.0;
}

}  // namespace

int auto_threads(const std::string& root) {
  const int cores = physical_cores(root);
  const double quota = cpu_quota(root);
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, cores) : cores;
}

void start_compute_threads(int threads) {
  constexpr int64_t beside_a_stack = 1 << 20;  // its guard pages, thread-local data, and what OpenMP keeps about it
  at::Tensor shared_out = at::empty({2 * threads * at::internal::GRAIN_SIZE}, at::kByte);
  const auto bytes = static_cast<size_t>(stack_bytes(threads - 1) + (threads - 1) * beside_a_stack);
  if (bytes > 0) {
    void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
      throw Error(Exit::does_not_fit, "memory",
                  "no room for the stacks of " + std::to_string(threads) + " compute threads, " +
                      size_text(static_cast<int64_t>(bytes)) +
                      ": lower experiment.threads, or raise `ulimit -d` or `ulimit -v`");
    }
    munmap(stacks, bytes);
  }
  shared_out.fill_(0);
}

}  // namespace headroom
