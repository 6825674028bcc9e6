// What came out of a sweep: results.json, results.csv and a table for people.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sweep/sweep_folder.hpp"

namespace headroom {

struct TrialResult {
  const Trial* trial = nullptr;
  TrialState state = TrialState::waiting;
  TrialRecord record;
  TrialRun run;
};

// The state that follows from what is on the disk: the record's end, a finished run, a run to go on with, or nothing
// yet.
TrialState state_on_disk(const TrialRecord& record, const TrialRun& run);

// The best of those finished, by the experiment's metric; nullptr without any.
const TrialResult* best_of(const std::vector<TrialResult>& results);

// Runs of one identity have the same mathematics, so their metrics are equal up to rounding. `metrics_of` gives the
// scalars of a trial.
struct IdentityGroup {
  std::string identity;
  std::vector<std::string> trials;
  std::string metric;             // the one that differs most
  double largest_difference = 0;  // of it, relative
  double tolerance = 0;           // that rounding explains
  bool agrees() const { return largest_difference <= tolerance; }
};
std::vector<IdentityGroup> compare_identities(const std::filesystem::path& sweep,
                                              const std::vector<TrialResult>& results);

nlohmann::json results_json(const SweepPlan& plan, const std::vector<TrialResult>& results,
                            const std::vector<IdentityGroup>& groups);
std::string results_csv(const SweepPlan& plan, const std::vector<TrialResult>& results);
std::string results_text(const SweepPlan& plan, const std::vector<TrialResult>& results,
                         const std::vector<IdentityGroup>& groups);

// Writes results.json, results.csv and report.html into the sweep's folder and returns the text.
std::string write_results(const std::filesystem::path& sweep, const SweepPlan& plan,
                          const std::vector<TrialResult>& results);

}  // namespace headroom
