// The jobs of one sweep in Slurm, by sbatch(1), squeue(1), sinfo(1) and scancel(1) alone: a cluster need not keep
// accounts. All jobs of a sweep have one name, and each says in its comment which trial it is of: so they are found
// again, whatever their sweep knew when it died.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace headroom {

struct SlurmJob {
  int64_t id = 0;
  std::string trial;   // its trial's id
  std::string state;   // in Slurm's words: "RUNNING"
  std::string reason;  // why it waits: "Resources"
  int status = 0;      // of its script, as waitpid() gives it, once it is over

  bool is_over() const;     // it does not run, and Slurm will not start it again
  bool is_waiting() const;  // it does not run yet, or not now
  // 137 where Slurm ended it before it could exit by itself.
  int exit_code() const;
};

// The lines of `squeue` in squeue_format.
extern const char* const squeue_format;
std::vector<SlurmJob> read_jobs(const std::string& lines);

// The memory of the largest node, in bytes, by the lines of `sinfo -o "%m %P"`: of those of `partition`, or of the
// default one where that is empty. 0: none is listed.
int64_t largest_node_bytes(const std::string& lines, const std::string& partition);

// The partition that sbatch's options name, or else SBATCH_PARTITION; "" where neither does.
std::string partition_of(const std::vector<std::string>& options);

struct JobRequest {
  std::filesystem::path script, log;  // the log is appended to
  std::string trial;
  int64_t memory_bytes = 0;  // --mem; 0: what the cluster gives
  int cpus = 1;
};

// Error(bad_input) where Slurm's commands are not in PATH.
void require_slurm();

class SlurmJobs {
 public:
  // `name`: of the sweep's jobs. `options`: sbatch's, of the user; they win over those of a JobRequest.
  // REQUIRES: require_slurm()
  SlurmJobs(std::string name, std::vector<std::string> options);

  // Asks Slurm for the jobs, unless that was only seconds ago. Returns whether there is a new answer.
  bool look();
  bool look_now();
  bool has_answered() const { return has_answered_; }
  // Slurm's words where it did not answer the last look(); "" where it did.
  const std::string& complaint() const { return complaint_; }

  const std::vector<SlurmJob>& all() const { return jobs_; }
  const SlurmJob* find(int64_t id) const;  // nullptr: Slurm has forgotten it; it is over. Valid until the next call

  // The new job's id; nullopt where Slurm refuses it: complaint() says why.
  std::optional<int64_t> submit(const JobRequest& request);
  // Slurm sends it SIGTERM, and SIGKILL later. Once for each job.
  void cancel(int64_t id);

  int64_t node_bytes() const;  // the memory of the largest node that jobs may run on; 0: not known
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::string> options_;
  std::vector<SlurmJob> jobs_;
  std::set<int64_t> cancelled_;
  std::string complaint_;
  bool has_answered_ = false;
  std::chrono::steady_clock::time_point looked_at_ = {};
};

}  // namespace headroom
