// The results of a sweep: results.json, results.csv and a table for people.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/comparison.hpp"
#include "sweep/sweep_folder.hpp"

namespace headroom {

struct TrialResult {
  const Trial* trial = nullptr;
  TrialState state = TrialState::waiting;
  TrialRecord record;
  TrialRun run;
};

// The state of a trial according to the disk: the end in its record, a finished run, a run to resume, or nothing yet.
TrialState state_on_disk(const TrialRecord& record, const TrialRun& run);

// The best finished trial, by the experiment's metric; nullptr: none has finished.
const TrialResult* best_of(const std::vector<TrialResult>& results);

// Finished trials with the same mathematics; their metrics should be equal up to rounding.
struct IdentityGroup {
  std::string identity;
  std::vector<std::string> trials;
  Agreement agreement;
};
std::vector<IdentityGroup> compare_identities(const std::filesystem::path& sweep,
                                              const std::vector<TrialResult>& results);

// `scheduling_ms`: the sweep's own time for each trial that it started, without that of starting the process.
nlohmann::json results_json(const SweepPlan& plan, const std::vector<TrialResult>& results,
                            const std::vector<IdentityGroup>& groups, std::optional<double> scheduling_ms = {});
std::string results_csv(const SweepPlan& plan, const std::vector<TrialResult>& results);
std::string results_text(const SweepPlan& plan, const std::vector<TrialResult>& results,
                         const std::vector<IdentityGroup>& groups, std::optional<double> scheduling_ms = {});

// Writes results.json, results.csv and report.html into the sweep's folder and returns the text.
std::string write_results(const std::filesystem::path& sweep, const SweepPlan& plan,
                          const std::vector<TrialResult>& results, std::optional<double> scheduling_ms);

}  // namespace headroom
