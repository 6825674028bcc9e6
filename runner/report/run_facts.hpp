// The facts of a run that lists and comparisons need: small, flat, and the same as JSON. And which runs of a list,
// by them.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// A number, a size in bytes, a duration in seconds: "8", "64 MiB", "10 min".
std::optional<double> quantity_of(const std::string& text);

struct RunFacts {
  std::filesystem::path folder;
  // "name", "state" (finished, stopped_early, failed, resumable, interrupted, ended_badly, running), "started",
  // "identity", "precision", "device", "metric"
  std::map<std::string, std::string> words;
  // "steps", "epochs", "train_seconds", "best", "best_step", "peak_bytes", "predicted_peak_bytes",
  // "limit_bytes", "samples_per_second", and every metric: "val/loss"
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> settings;  // "train.batch_size" -> "8": experiment.toml, flat

  std::string word(const std::string& key) const;
  // A word, a number as text, or a setting; "" where there is none of that name.
  std::string text(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;  // also of a setting that is one (quantity_of())
  std::vector<std::string> metrics() const;                    // names with a split: "val/loss"

  nlohmann::json json() const;
  static RunFacts from_json(const nlohmann::json& json);  // nlohmann::json::exception
};

bool is_run_folder(const std::filesystem::path& folder);

// What the folder's files say. Never throws for a damaged file: what cannot be read is not there.
RunFacts read_run_facts(const std::filesystem::path& folder);

// The state of a run that is running, which its files do not tell: whoever shows the state calls this first.
void note_running(RunFacts& run);

// Changes when a file of those changes.
std::string stamp_of(const std::filesystem::path& folder);

// Every run below `root`, also those of sweeps, in the order of their paths.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& root);

// Which runs of a list: 'val/loss < 0.1', 'peak_bytes <= 2 GiB', 'train.batch_size == 8', 'state != failed'.
class RunFilter {
 public:
  // Error(bad_input) for what is no comparison.
  explicit RunFilter(const std::string& text);
  bool holds(const RunFacts& run) const;  // a run without that key: only for !=

 private:
  std::string key_, operator_, text_;
  std::optional<double> number_;
};

// By a key: numbers as numbers, words as words, those without it last.
void sort_runs(std::vector<RunFacts>& runs, const std::string& key, bool descending);

}  // namespace headroom
