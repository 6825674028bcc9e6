#include "sweep/results.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "memory/readable.hpp"
#include "record/numbers.hpp"
#include "record/run_folder.hpp"
#include "report/sweep_report.hpp"
#include "report/text_table.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json trial_json(const TrialResult& result) {
  Json set = Json::object();
  for (const auto& [key, value] : result.trial->settings) set[key] = value;
  Json json = result.record.json();
  // Of trial.json; results.json has its own.
  json.erase("format");
  json.update({{"id", result.trial->id}, {"set", set}, {"state", state_name(result.state)}});
  const TrialRun& run = result.run;
  if (!run.folder.empty()) {
    // Relative to the sweep's folder, which may be moved: trials/<trial>/<name>/<time>-<id>.
    const fs::path name = run.folder.parent_path().filename() / run.folder.filename();
    json["run"] = (fs::path("trials") / result.trial->id / name).string();
  }
  // A run without a summary has no figures.
  if (run.identity.empty()) return json;
  json.update({{"identity", run.identity},
               {"peak_bytes", run.peak_bytes},
               {"samples_per_second", run.samples_per_second},
               {"train_seconds", run.seconds},
               {"epochs", run.epochs},
               {"steps", run.steps},
               {"best_epoch", run.best_epoch},
               {"stopped_early", run.stopped_early},
               {"metric", nullptr}});
  if (run.metric) json["metric"] = *run.metric;
  return json;
}

std::vector<std::string> cells_of(const TrialResult& result, bool best) {
  const TrialRun& run = result.run;
  const bool measured = !run.identity.empty();
  const int64_t predicted = result.record.predicted_peak_bytes;
  std::string peak = measured ? size_text(run.peak_bytes) : "";
  // In brackets: predicted, not measured.
  if (!measured && predicted > 0) peak = "(" + size_text(predicted) + ")";
  std::string state(state_name(result.state));
  if (result.state == TrialState::paused || result.state == TrialState::dropped)
    state += ", epoch " + std::to_string(run.epochs);
  if (result.record.retry_micro_batch > 0) state += ", micro-batch " + std::to_string(result.record.retry_micro_batch);
  return {(best ? "* " : "  ") + result.trial->id, state, peak, measured ? short_number(run.samples_per_second) : "",
          run.metric ? short_number(*run.metric) : ""};
}

size_t count_of(const std::vector<TrialResult>& results, TrialState state) {
  return static_cast<size_t>(std::ranges::count(results, state, &TrialResult::state));
}

std::string counts_text(const std::vector<TrialResult>& results) {
  std::string text = std::to_string(results.size()) + " trials";
  // TrialState::pruned is the last of the states.
  for (size_t i = 0; i <= static_cast<size_t>(TrialState::pruned); ++i) {
    const auto state = static_cast<TrialState>(i);
    if (const size_t count = count_of(results, state); count > 0)
      text += ", " + std::to_string(count) + " " + std::string(state_name(state));
  }
  return text;
}

std::string identity_lines(const std::vector<IdentityGroup>& groups) {
  std::string text;
  for (const IdentityGroup& group : groups) {
    text += std::to_string(group.trials.size()) + " trials of one identity, " + group.identity.substr(0, 8) + " (" +
            group.trials.front() + ", ...): ";
    const Agreement& found = group.agreement;
    text += found.metric.empty() ? std::string("equal metrics")
                                 : found.metric + " differs by at most " + short_number(found.largest_difference);
    text += found.agrees() ? "\n" : ", more than is usual for rounding (" + short_number(found.tolerance) + ")\n";
  }
  return text;
}

}  // namespace

TrialState state_on_disk(const TrialRecord& record, const TrialRun& run) {
  // What the sweep decided comes first: a failed trial has a run folder, too.
  if (record.decided) return *record.decided;
  if (run.finished) return TrialState::finished;
  return run.folder.empty() ? TrialState::waiting : TrialState::interrupted;
}

const TrialResult* best_of(const std::vector<TrialResult>& results) {
  const TrialResult* best = nullptr;
  for (const TrialResult& result : results) {
    const auto& metric = result.run.metric;
    // NaN is never better, but as the first one it could not be beaten either.
    if (result.state != TrialState::finished || !metric || std::isnan(*metric)) continue;
    const bool better =
        best == nullptr || (result.run.lower_wins ? *metric < *best->run.metric : *metric > *best->run.metric);
    if (better) best = &result;
  }
  return best;
}

std::vector<IdentityGroup> compare_identities(const fs::path& sweep, const std::vector<TrialResult>& results) {
  std::map<std::string, std::vector<const TrialResult*>> by_identity;
  for (const TrialResult& result : results) {
    if (result.state == TrialState::finished && !result.run.identity.empty())
      by_identity[result.run.identity].push_back(&result);
  }
  std::vector<IdentityGroup> groups;
  for (const auto& [identity, members] : by_identity) {
    if (members.size() < 2) continue;
    IdentityGroup& group = groups.emplace_back(IdentityGroup{.identity = identity, .trials = {}, .agreement = {}});
    std::vector<Metrics> metrics;
    for (const TrialResult* member : members) {
      group.trials.push_back(member->trial->id);
      metrics.push_back(TrialFolder(sweep, member->trial->id).metrics());
    }
    // Precision is part of the identity, so the first one has that of all.
    group.agreement = agreement_of(metrics, rounding_tolerance(members.front()->run.precision));
  }
  return groups;
}

Json results_json(const SweepPlan& plan, const std::vector<TrialResult>& results,
                  const std::vector<IdentityGroup>& groups, std::optional<double> scheduling_ms) {
  Json json = {{"format", 1},
               {"name", plan.name},
               {"file", plan.file},
               {"metric", plan.metric},
               {"jobs", plan.jobs},
               {"threads", plan.threads},
               {"trials", Json::array()},
               {"best", nullptr},
               {"identities", Json::array()},
               {"counts", Json::object()}};
  if (scheduling_ms) json["scheduling_ms"] = *scheduling_ms;
  if (plan.halving.is_on()) json["rung_epochs"] = plan.halving.rung_epochs;
  for (const TrialResult& result : results) {
    json["trials"].push_back(trial_json(result));
    const std::string state(state_name(result.state));
    json["counts"][state] = json["counts"].value(state, 0) + 1;
  }
  if (const TrialResult* best = best_of(results)) {
    json["best"] = best->trial->id;
    json["better"] = best->run.lower_wins ? "lower" : "higher";
  }
  for (const IdentityGroup& group : groups) {
    Json& entry = json["identities"].emplace_back(group.agreement.json());
    entry.update({{"identity", group.identity}, {"trials", group.trials}});
  }
  return json;
}

std::string results_csv(const SweepPlan& plan, const std::vector<TrialResult>& results) {
  std::string text = "trial,state";
  // All trials have the same keys in the same order.
  for (const auto& [key, value] : plan.trials.front().settings) text += "," + csv_field(key);
  text += "," + csv_field(plan.metric) +
          ",peak_bytes,predicted_peak_bytes,limit_bytes,micro_batch,samples_per_second," +
          "train_seconds,epochs,steps,identity,why\n";
  // 0 is not known, and becomes an empty field.
  const auto number = [](int64_t value) { return value > 0 ? std::to_string(value) : std::string(); };
  for (const TrialResult& result : results) {
    const TrialRun& run = result.run;
    const TrialRecord& record = result.record;
    text += csv_field(result.trial->id) + "," + std::string(state_name(result.state));
    for (const auto& [key, value] : result.trial->settings) text += "," + csv_field(value);
    text += "," + (run.metric ? exact_number(*run.metric) : "") + "," + number(run.peak_bytes) + "," +
            number(record.predicted_peak_bytes) + "," + number(record.limit_bytes) + "," +
            number(record.retry_micro_batch > 0 ? record.retry_micro_batch : record.micro_batch) + "," +
            (run.samples_per_second > 0 ? exact_number(run.samples_per_second) : "") + "," +
            (run.seconds > 0 ? exact_number(run.seconds) : "") + "," + number(run.epochs) + "," + number(run.steps) +
            "," + run.identity + "," + csv_field(record.why) + "\n";
  }
  return text;
}

std::string results_text(const SweepPlan& plan, const std::vector<TrialResult>& results,
                         const std::vector<IdentityGroup>& groups, std::optional<double> scheduling_ms) {
  const TrialResult* best = best_of(results);
  TextTable table({"  trial", "state", "peak", "samples/s", plan.metric}, 2, /*free_end=*/false);
  for (const TrialResult& result : results) table.add(cells_of(result, &result == best));
  std::string text = table.text();
  text += "\n" + counts_text(results);
  if (scheduling_ms) text += "; scheduling took " + short_number(*scheduling_ms) + " ms a trial";
  text += "\n";
  for (const TrialResult& result : results) {
    if (!result.record.why.empty())
      text += result.trial->id + " " + std::string(state_name(result.state)) + ": " + result.record.why + "\n";
  }
  text += identity_lines(groups);
  if (best != nullptr)
    text += "best " + plan.metric + " " + short_number(*best->run.metric) + ": " + best->trial->id + ", " +
            best->run.folder.string() + "\n";
  return text;
}

std::string write_results(const fs::path& sweep, const SweepPlan& plan, const std::vector<TrialResult>& results,
                          std::optional<double> scheduling_ms) {
  const auto groups = compare_identities(sweep, results);
  write_file_atomically(sweep / "results.json",
                        json_text(results_json(plan, results, groups, scheduling_ms), 2) + "\n");
  write_file_atomically(sweep / "results.csv", results_csv(plan, results));
  // Last: the report reads results.json.
  write_sweep_report(sweep);
  return results_text(plan, results, groups, scheduling_ms);
}

}  // namespace headroom
