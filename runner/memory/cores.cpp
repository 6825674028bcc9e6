#include "memory/cores.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sched.h>
#include <set>
#include <thread>
#include <unistd.h>

#include "memory/slurm.hpp"

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

// Of the whole machine, this thread included.
std::optional<int> running_threads(const std::string& root) {
  std::ifstream file(root + "proc/stat");
  std::string name;
  while (file >> name) {
    if (int count = 0; name == "procs_running" && file >> count) return count;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace

int auto_threads(const std::string& root) {
  int threads = physical_cores(root);
  if (const double quota = cpu_quota(root); quota > 0)
    threads = std::clamp(static_cast<int>(std::ceil(quota)), 1, threads);
  if (const int given = slurm_cpus(); given > 0) threads = std::min(threads, given);
  return threads;
}

bool cores_are_free(const std::string& root) {
  const int threads = auto_threads(root), most_others = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - threads;
  if (const double quota = cpu_quota(root); quota > 0 && quota < threads) return false;
  // One look may meet a thread that only passes by, so two have to agree.
  for (int free = 0, taken = 0;;) {
    const std::optional<int> running = running_threads(root);
    if (!running) return false;
    const bool is_free = *running - 1 <= most_others;
    if (++(is_free ? free : taken) == 2) return is_free;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace headroom
