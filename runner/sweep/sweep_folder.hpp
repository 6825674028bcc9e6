// A sweep on the disk: sweep.json (the trials), and trials/<id>/ with the trial's experiment (trial.toml), what the
// sweep decided about it (trial.json), its log (log.txt) and the run folders of its attempts. The state of a trial
// follows from these files alone, whichever process was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "record/run_folder.hpp"
#include "report/comparison.hpp"
#include "sweep/halving.hpp"
#include "sweep/trials.hpp"

namespace headroom {

enum class TrialState {
  waiting,
  planning,
  running,
  settling,
  interrupted,
  paused,  // at the end of a rung
  finished,
  dropped,  // at the end of a rung, where others were promoted
  failed,
  infeasible,
  pruned,
};
std::string_view state_name(TrialState state);
bool is_end(TrialState state);     // it will not run again
bool is_active(TrialState state);  // a process works on it
bool is_open(TrialState state);    // it has to be started

// What the sweep itself knows of a trial.
struct TrialRecord {
  std::optional<TrialState> decided;                  // failed, infeasible or pruned; nullopt: the run folder says
  std::string why;                                    // one sentence about it
  int exit_code = 0;                                  // of the failure
  int64_t predicted_peak_bytes = 0, limit_bytes = 0;  // 0: not known
  int64_t micro_batch = 0;                            // planned; 0: not known
  int64_t retry_micro_batch = 0;                      // used after it ran out of memory once; 0: it did not
  std::string retry_because;
  std::vector<double> rung_metrics;  // the best experiment.metric at the end of each rung reached; NaN: none
  int64_t job = 0;                   // of Slurm, whose end the sweep has not seen; 0: none

  nlohmann::json json() const;
  static TrialRecord from_json(const nlohmann::json& json);  // nlohmann::json::exception
};

// The facts of a trial's latest run.
struct TrialRun {
  std::filesystem::path folder;  // empty: there is none to resume
  bool finished = false, stopped_early = false;
  std::string error;     // the error of a failed run
  std::string identity;  // "" until there is a summary; the figures are then 0
  std::optional<double> metric;
  bool lower_wins = true;
  int64_t best_epoch = 0, epochs = 0, steps = 0;
  double samples_per_second = 0, seconds = 0;
  int64_t peak_bytes = 0;
  std::string precision;
};

// The folder of a trial.
class TrialFolder {
 public:
  TrialFolder(const std::filesystem::path& sweep, const std::string& id) : path_(sweep / "trials" / id) {}
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path experiment() const { return path_ / "trial.toml"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }
  std::filesystem::path job() const { return path_ / "job.sh"; }

  TrialRecord record() const;  // an empty one where there is none
  void write(const TrialRecord& record) const;

  // The run that was started or resumed last.
  std::filesystem::path newest_run() const;
  TrialRun run() const;
  Metrics metrics() const;  // of its summary: ("val/loss", 0.1)

  // Locks the trial. The lock is held until this process and all children that inherited it are gone. Returns its
  // descriptor; -1: another process holds it.
  int try_lock() const;

 private:
  std::filesystem::path path_;
};

// sweep.json
struct SweepPlan {
  std::string name, file, metric;
  std::vector<std::string> set;                    // --set
  std::vector<std::filesystem::path> plugin_dirs;  // absolute
  int jobs = 1, threads = 1;                       // trials at once, and compute threads of each
  bool plan = true;                                // predict memory first
  std::string limit;                               // memory.limit of the experiment
  std::optional<std::vector<std::string>> slurm;   // trials are jobs of Slurm's, with these options of sbatch
  Halving halving;
  std::vector<Trial> trials;  // without choices

  nlohmann::json json() const;
  static SweepPlan from_json(const nlohmann::json& json);  // nlohmann::json::exception
};

// Error(bad_input) when it is no sweep's folder.
SweepPlan read_sweep_plan(const std::filesystem::path& sweep);

}  // namespace headroom
