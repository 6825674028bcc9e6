#include "memory/slurm.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace headroom {

namespace {

constexpr int64_t mib = int64_t{1} << 20;
constexpr int64_t most_mib = INT64_MAX / mib;

// 0: it is not set, or is no number above 0 and up to `most`.
int64_t number_of(const char* name, int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  int64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end && number > 0 && number <= most ? number : 0;
}

// slurmd sets it for what it starts itself.
bool started_by_slurm() { return std::getenv("SLURMD_NODENAME") != nullptr; }

}  // namespace

std::optional<SlurmMemory> slurm_memory() {
  if (!started_by_slurm()) return std::nullopt;
  const char* job = std::getenv("SLURM_JOB_ID");
  const std::string id = job != nullptr ? job : "?";
  const auto of_job = [&id](const char* variable, int64_t bytes) {
    return SlurmMemory{std::string(variable) + " of job " + id, "slurm:" + id, bytes};
  };
  // --mem, in MiB; 0 there means all of the machine's.
  if (const int64_t node = number_of("SLURM_MEM_PER_NODE", most_mib); node > 0)
    return of_job("SLURM_MEM_PER_NODE", node * mib);
  const int64_t cpu = number_of("SLURM_MEM_PER_CPU", most_mib);
  const int64_t cpus = number_of("SLURM_CPUS_ON_NODE", INT32_MAX);
  if (cpu == 0 || cpus == 0 || cpu > most_mib / cpus) return std::nullopt;
  return of_job("SLURM_MEM_PER_CPU", cpu * cpus * mib);
}

int slurm_cpus() {
  if (!started_by_slurm()) return 0;
  const int64_t task = number_of("SLURM_CPUS_PER_TASK", INT32_MAX);
  return static_cast<int>(task > 0 ? task : number_of("SLURM_CPUS_ON_NODE", INT32_MAX));
}

}  // namespace headroom
