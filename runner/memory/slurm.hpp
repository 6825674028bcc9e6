// What Slurm gives a job on this machine, as the environment of its processes says (sbatch(1), srun(1)). Most clusters
// enforce it by cgroups too. Where they do not, slurmd adds up what the job's processes hold and kills the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

struct SlurmMemory {
  std::string name;   // "SLURM_MEM_PER_NODE of job 123"
  std::string scope;  // "slurm:123": all of the job's processes on this machine share it
  int64_t bytes = 0;  // above 0
};

// nullopt: this process is of no Slurm job, or the job may use all of the machine. A shell of salloc has a job's
// variables on a machine that is not the job's: it is of none. [any]
std::optional<SlurmMemory> slurm_memory();

// CPUs of this task, or of the job on this machine where the tasks were given no number; 0: of no job. [any]
int slurm_cpus();

}  // namespace headroom
