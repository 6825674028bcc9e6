// report.html of a sweep: heat maps over the keys that were swept, the Pareto front, every trial.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

// Error(bad_input) where results.json is missing or damaged.
std::string sweep_report(const std::filesystem::path& sweep);

// Writes report.html into the sweep's folder. Error(cannot_write), Error(bad_input).
void write_sweep_report(const std::filesystem::path& sweep);

// results.json of a sweep, as its page needs it.

struct SweptTrial {
  std::string id, state, why, identity;
  std::string run;                                            // its run's folder, below the sweep's; "": none
  std::vector<std::pair<std::string, std::string>> settings;  // key and value, by key
  std::optional<double> metric, peak_bytes, predicted_peak_bytes, samples_per_second, train_seconds;
  int64_t micro_batch = 0, epochs = 0;  // 0: not known
  bool is_best = false;

  std::string setting(const std::string& key) const;  // "" where it has none
};

struct SweepReading {
  std::string name, metric;
  std::vector<SweptTrial> trials;
  std::vector<std::string> keys;  // that were swept
  nlohmann::json counts, identities;
  bool lower_wins = true;
  std::optional<double> scheduling_ms;  // a trial

  // The values a key took: numbers in rising order, others as they came.
  std::vector<std::string> values_of(const std::string& key) const;
};

bool is_sweep_folder(const std::filesystem::path& folder);

// Error(bad_input) where results.json is missing or damaged.
SweepReading read_sweep(const std::filesystem::path& folder);

// What a sweep's trials cost for what they reach: the Pareto front of memory against the metric, and what a smaller
// batch with more accumulation costs and saves where the mathematics stay the same.

struct ParetoPoint {
  double cost = 0, value = 0;
};

// Which trials nobody beats: numbers of the points on the front, by rising cost. A point is on it when no other costs
// at most as much and is better, or costs less and is as good.
std::vector<size_t> pareto_front(const std::vector<ParetoPoint>& points, bool lower_wins);

// What a smaller batch costs, beside what the users' guides say of it: a table a group of trials of one identity that
// differ in batch size, each against the group's largest batch; "" where there is none.
std::string trade_off(const SweepReading& sweep);

}  // namespace headroom
