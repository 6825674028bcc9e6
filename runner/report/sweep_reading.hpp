// results.json of a sweep, for its page.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

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

  // The values that a key had: numbers in rising order, others in the order of the trials.
  std::vector<std::string> values_of(const std::string& key) const;
};

bool is_sweep_folder(const std::filesystem::path& folder);

// Error(bad_input) where results.json is missing or damaged.
SweepReading read_sweep(const std::filesystem::path& folder);

}  // namespace headroom
