#include <algorithm>
#include <charconv>

#include "error.hpp"
#include "memory/readable.hpp"
#include "record/run_folder.hpp"
#include "report/sweep_report.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// What is missing or of another type counts as not known: a file may be of another version.
std::string word_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

// 0 stands for "not known".
std::optional<double> amount_at(const Json& json, const char* key) {
  const auto number = number_at(json, key);
  return number && *number > 0 ? number : std::nullopt;
}

SweptTrial trial_of(const Json& json) {
  SweptTrial trial;
  trial.id = word_at(json, "id");
  trial.state = word_at(json, "state");
  trial.why = word_at(json, "why");
  trial.identity = word_at(json, "identity");
  trial.run = word_at(json, "run");
  if (const auto set = json.find("set"); set != json.end() && set->is_object()) {
    for (const auto& [key, value] : set->items())
      trial.settings.emplace_back(key, value.is_string() ? value.get<std::string>() : json_text(value));
  }
  trial.metric = number_at(json, "metric");
  trial.peak_bytes = amount_at(json, "peak_bytes");
  trial.predicted_peak_bytes = amount_at(json, "predicted_peak_bytes");
  trial.samples_per_second = amount_at(json, "samples_per_second");
  trial.train_seconds = amount_at(json, "train_seconds");
  const auto retry = json.find("retry");
  // A trial that was retried trained with the micro-batch of the retry.
  const Json& last = retry != json.end() && retry->is_object() ? *retry : json;
  trial.micro_batch = static_cast<int64_t>(amount_at(last, "micro_batch").value_or(0));
  trial.epochs = static_cast<int64_t>(amount_at(json, "epochs").value_or(0));
  return trial;
}

std::optional<double> plain_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string SweptTrial::setting(const std::string& key) const {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& pair) { return pair.first == key; });
  return found == settings.end() ? "" : found->second;
}

std::vector<std::string> SweepReading::values_of(const std::string& key) const {
  std::vector<std::string> values;
  for (const SweptTrial& trial : trials) {
    const std::string value = trial.setting(key);
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  // In order only where all are numbers: "auto" has no place among them.
  const bool numbers =
      std::all_of(values.begin(), values.end(), [](const auto& value) { return plain_number(value).has_value(); });
  if (numbers)
    std::stable_sort(values.begin(), values.end(),
                     [](const auto& a, const auto& b) { return *plain_number(a) < *plain_number(b); });
  return values;
}

bool is_sweep_folder(const fs::path& folder) {
  std::error_code error;
  // sweep.json is there from the beginning, results.json from the end on.
  return fs::exists(folder / "results.json", error) || fs::exists(folder / "sweep.json", error);
}

SweepReading read_sweep(const fs::path& folder) {
  const Json results = read_json_file(folder / "results.json");
  if (!results.is_object() || !results.contains("trials") || !results["trials"].is_array()) {
    throw Error(Exit::bad_input, "report",
                (folder / "results.json").string() + " is missing or damaged; `headroom sweep --resume " +
                    shell_word(folder.string()) + "` writes it again");
  }
  SweepReading sweep;
  sweep.name = word_at(results, "name");
  sweep.metric = word_at(results, "metric");
  sweep.counts = results.value("counts", Json::object());
  sweep.identities = results.value("identities", Json::array());
  const std::string best = word_at(results, "best");
  for (const Json& json : results["trials"]) {
    if (!json.is_object()) continue;
    SweptTrial trial = trial_of(json);
    trial.is_best = !best.empty() && trial.id == best;
    for (const auto& [key, value] : trial.settings) {
      if (std::find(sweep.keys.begin(), sweep.keys.end(), key) == sweep.keys.end()) sweep.keys.push_back(key);
    }
    sweep.trials.push_back(std::move(trial));
  }
  // Not written where no trial has finished, and only finished trials show figures.
  sweep.lower_wins = word_at(results, "better") != "higher";
  sweep.scheduling_ms = number_at(results, "scheduling_ms");
  return sweep;
}

}  // namespace headroom
