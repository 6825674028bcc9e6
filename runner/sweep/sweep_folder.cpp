#include "sweep/sweep_folder.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// In the order of TrialState. For people, a trial that settles is stopping.
constexpr std::array state_names =
    std::to_array<std::string_view>({"waiting", "planning", "running", "stopping", "interrupted", "paused", "finished",
                                     "dropped", "failed", "infeasible", "pruned"});

TrialState state_of(const std::string& name) {
  for (size_t i = 0; i < state_names.size(); ++i) {
    if (state_names[i] == name) return static_cast<TrialState>(i);
  }
  // A word that this version does not know: the trial is not started again.
  return TrialState::failed;
}

void fill_in(TrialRun& run, const Json& summary) {
  const std::string state = summary.value("state", "");
  run.stopped_early = state == "stopped_early";
  run.finished = state == "finished" || run.stopped_early;
  run.error = summary.value("error", "");
  run.identity = summary.value("identity", "");
  run.epochs = summary.value("epochs", int64_t{0});
  run.steps = summary.value("steps", int64_t{0});
  run.seconds = summary.value("train_seconds", 0.0);
  run.precision = summary.value("precision", "");
  // Every window counts as a whole one, although the last of an epoch may be smaller.
  const double samples = static_cast<double>(run.steps * summary.value("window_samples", int64_t{0}));
  if (run.seconds > 0) run.samples_per_second = samples / run.seconds;
  if (summary.contains("memory")) run.peak_bytes = summary["memory"].value("measured_peak_bytes", int64_t{0});
  const auto best = summary.find("best");
  if (best == summary.end() || !best->is_object()) return;
  if (best->contains("value") && best->at("value").is_number()) run.metric = best->at("value").get<double>();
  run.best_epoch = best->value("epoch", int64_t{0});
  run.lower_wins = best->value("better", "lower") == "lower";
}

}  // namespace

std::string_view state_name(TrialState state) { return state_names.at(static_cast<size_t>(state)); }

// By the order of TrialState: ends come last.
bool is_end(TrialState state) { return state >= TrialState::finished; }

bool is_active(TrialState state) {
  return state == TrialState::planning || state == TrialState::running || state == TrialState::settling;
}

bool is_open(TrialState state) { return state == TrialState::waiting || state == TrialState::interrupted; }

Json TrialRecord::json() const {
  Json json = {{"format", 1}};
  if (decided) json.update({{"state", state_name(*decided)}, {"why", why}, {"exit_code", exit_code}});
  if (predicted_peak_bytes > 0) json["predicted_peak_bytes"] = predicted_peak_bytes;
  if (limit_bytes > 0) json["limit_bytes"] = limit_bytes;
  if (micro_batch > 0) json["micro_batch"] = micro_batch;
  if (retry_micro_batch > 0) json["retry"] = {{"micro_batch", retry_micro_batch}, {"because", retry_because}};
  if (!rung_metrics.empty()) json["rung_metrics"] = rung_metrics;
  if (job > 0) json["slurm_job"] = job;
  return json;
}

TrialRecord TrialRecord::from_json(const Json& json) {
  TrialRecord record;
  if (json.contains("state")) record.decided = state_of(json["state"]);
  record.why = json.value("why", "");
  record.exit_code = json.value("exit_code", 0);
  record.predicted_peak_bytes = json.value("predicted_peak_bytes", int64_t{0});
  record.limit_bytes = json.value("limit_bytes", int64_t{0});
  record.micro_batch = json.value("micro_batch", int64_t{0});
  record.job = json.value("slurm_job", int64_t{0});
  if (json.contains("retry")) {
    json["retry"].at("micro_batch").get_to(record.retry_micro_batch);
    json["retry"].at("because").get_to(record.retry_because);
  }
  // JSON has no NaN: it was written as null.
  for (const Json& metric : json.value("rung_metrics", Json::array()))
    record.rung_metrics.push_back(metric.is_null() ? NAN : metric.get<double>());
  return record;
}

TrialRecord TrialFolder::record() const {
  const Json json = read_json_file(path_ / "trial.json");
  try {
    return json.is_object() ? TrialRecord::from_json(json) : TrialRecord();
  } catch (const Json::exception&) {  // somebody else's hand: the run folder still knows
    return {};
  }
}

void TrialFolder::write(const TrialRecord& record) const {
  write_file_atomically(path_ / "trial.json", json_text(record.json(), 2) + "\n");
}

fs::path TrialFolder::newest_run() const {
  fs::path newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (const auto& named : fs::directory_iterator(path_, error)) {
    if (!named.is_directory()) continue;
    for (const auto& run : fs::directory_iterator(named.path(), error)) {
      std::error_code not_begun;
      // A run writes its experiment.toml when it begins, and again when it goes on.
      const auto time = fs::last_write_time(run.path() / "experiment.toml", not_begun);
      if (not_begun || (!newest.empty() && time < newest_time)) continue;
      newest = run.path(), newest_time = time;
    }
  }
  return newest;
}

TrialRun TrialFolder::run() const {
  TrialRun run;
  run.folder = newest_run();
  const Json summary = run.folder.empty() ? Json() : read_json_file(run.folder / "summary.json");
  if (summary.is_object()) {
    try {
      fill_in(run, summary);
    } catch (const Json::exception&) {
      // Damaged: what was read before stays.
    }
  }
  return run;
}

Metrics TrialFolder::metrics() const {
  const Json summary = read_json_file(newest_run() / "summary.json");
  Metrics metrics;
  if (!summary.is_object()) return metrics;
  const Json values = summary.value("metrics", Json::object());
  for (const auto& [name, value] : values.items()) {
    if (value.is_number()) metrics[name] = value;
  }
  return metrics;
}

int TrialFolder::try_lock() const {
  const fs::path file = path_ / "trial.lock";
  // O_CLOEXEC: only the child that is to hold the lock gets it (ChildOptions::kept_file).
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) throw cannot_write(file, errno);
  // On a file system without locks the trial does without.
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return lock;
  ::close(lock);
  return -1;
}

Json SweepPlan::json() const {
  Json list = Json::array();
  for (const Trial& trial : trials) {
    Json settings = Json::object();
    for (const auto& [key, value] : trial.settings) settings[key] = value;
    list.push_back({{"id", trial.id}, {"set", settings}});
  }
  std::vector<std::string> dirs;
  for (const fs::path& dir : plugin_dirs) dirs.push_back(dir.string());
  // JSON sorts the members of "set"; this list keeps the order of the sweep.
  std::vector<std::string> keys;
  for (const auto& [key, value] : trials.empty() ? Settings() : trials.front().settings) keys.push_back(key);
  Json json = {{"format", 1},        {"name", name}, {"keys", keys},        {"file", file},
               {"metric", metric},   {"set", set},   {"plugin_dirs", dirs}, {"jobs", jobs},
               {"threads", threads}, {"plan", plan}, {"limit", limit},      {"trials", list}};
  if (slurm) json["slurm"] = {{"options", *slurm}};
  if (halving.is_on()) json["halving"] = {{"rung_epochs", halving.rung_epochs}, {"reduction", halving.reduction}};
  return json;
}

SweepPlan SweepPlan::from_json(const Json& json) {
  SweepPlan plan;
  json.at("name").get_to(plan.name);
  json.at("file").get_to(plan.file);
  json.at("metric").get_to(plan.metric);
  json.at("set").get_to(plan.set);
  json.at("jobs").get_to(plan.jobs);
  json.at("threads").get_to(plan.threads);
  json.at("plan").get_to(plan.plan);
  json.at("limit").get_to(plan.limit);
  for (const std::string& dir : json.at("plugin_dirs").get<std::vector<std::string>>())
    plan.plugin_dirs.emplace_back(dir);
  if (json.contains("slurm")) json["slurm"].at("options").get_to(plan.slurm.emplace());
  if (json.contains("halving")) {
    json["halving"].at("rung_epochs").get_to(plan.halving.rung_epochs);
    json["halving"].at("reduction").get_to(plan.halving.reduction);
  }
  for (const Json& entry : json.at("trials")) {
    Trial trial{.id = entry.at("id"), .settings = {}, .choices = {}};
    for (const auto& key : json.at("keys"))
      trial.settings.emplace_back(key, entry.at("set").at(key.get<std::string>()));
    plan.trials.push_back(std::move(trial));
  }
  return plan;
}

SweepPlan read_sweep_plan(const fs::path& sweep) {
  const Json json = read_json_file(sweep / "sweep.json");
  if (!json.is_object()) {
    throw Error(Exit::bad_input, "sweep",
                sweep.string() +
                    " is not a sweep's folder: it holds no sweep.json; give runs/<name>/<time>-<id> of a "
                    "sweep");
  }
  try {
    return SweepPlan::from_json(json);
  } catch (const Json::exception& problem) {
    throw Error(Exit::bad_input, "sweep", (sweep / "sweep.json").string() + " cannot be read: " + problem.what());
  }
}

}  // namespace headroom
