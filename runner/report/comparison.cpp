#include "report/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace headroom {

namespace {

// |a - b| against the larger; 0 for two NaN, infinite for one.
double relative_difference(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

}  // namespace

nlohmann::json Agreement::json() const {
  return {{"metric", metric},
          {"largest_difference", largest_difference},
          {"tolerance", tolerance},
          {"compared", compared},
          {"agrees", agrees()}};
}

Agreement agreement_of(std::span<const Metrics> runs, double tolerance) {
  Agreement found{.metric = "", .tolerance = tolerance};
  // A metric that the first run lacks is not compared.
  for (const auto& [name, value] : runs.front()) {
    bool all = true;
    for (const Metrics& run : runs) {
      const auto other = run.find(name);
      all = all && other != run.end();
      if (other == run.end()) continue;
      const double difference = relative_difference(value, other->second);
      if (difference > found.largest_difference) found.largest_difference = difference, found.metric = name;
    }
    found.compared += all ? 1 : 0;
  }
  return found;
}

// Far above one rounding of the type (1e-16, 6e-8, 4e-3), because training carries it on and lets it grow. 2e-2 is for
// bf16 and fp16; docs/results.md names these figures.
double rounding_tolerance(const std::string& precision) {
  if (precision == "fp64") return 1e-8;
  return precision == "fp32" ? 1e-3 : 2e-2;
}

namespace {

template <typename Keys>
std::vector<ComparedValue> values_of(const std::vector<RunFacts>& runs, const Keys& keys) {
  std::vector<ComparedValue> list;
  for (const auto& key : keys) {
    ComparedValue compared{std::string(key), {}};
    for (const RunFacts& run : runs) compared.values.push_back(run.text(compared.key));
    list.push_back(std::move(compared));
  }
  return list;
}

bool differs(const ComparedValue& compared) {
  return std::any_of(compared.values.begin(), compared.values.end(),
                     [&](const std::string& value) { return value != compared.values.front(); });
}

bool ended_well(const RunFacts& run) { return run.word("state") == "finished" || run.word("state") == "stopped_early"; }

SameMathematics same_mathematics(const std::vector<RunFacts>& runs, const std::string& identity,
                                 std::vector<size_t> same) {
  std::vector<Metrics> metrics;
  double tolerance = 0;
  for (const size_t number : same) {
    Metrics& of_run = metrics.emplace_back();
    for (const std::string& metric : runs[number].metrics()) of_run[metric] = runs[number].numbers.at(metric);
    // Precision is part of the identity; a run whose folder does not tell it counts as the coarsest.
    tolerance = std::max(tolerance, rounding_tolerance(runs[number].word("precision")));
  }
  return {.identity = identity, .runs = std::move(same), .agreement = agreement_of(metrics, tolerance)};
}

}  // namespace

Comparison compare_runs(const std::vector<RunFacts>& runs) {
  std::set<std::string> settings, metrics;
  for (const RunFacts& run : runs) {
    for (const auto& [key, value] : run.settings) settings.insert(key);
    for (const std::string& metric : run.metrics()) metrics.insert(metric);
  }
  Comparison comparison;
  comparison.settings = values_of(runs, settings);
  std::erase_if(comparison.settings, [](const ComparedValue& compared) { return !differs(compared); });
  constexpr std::array<std::string_view, 9> facts = {
      "state",         "identity",           "steps",      "epochs",
      "train_seconds", "samples_per_second", "peak_bytes", "predicted_peak_bytes",
      "best"};
  comparison.facts = values_of(runs, facts);
  comparison.metrics = values_of(runs, metrics);
  std::map<std::string, std::vector<size_t>> by_identity;
  for (size_t i = 0; i < runs.size(); ++i) {
    // The same mathematics at another step gives other metrics, so the step is part of the key.
    if (!runs[i].word("identity").empty() && ended_well(runs[i]))
      by_identity[runs[i].word("identity") + " at step " + runs[i].text("steps")].push_back(i);
  }
  for (const auto& [identity, same] : by_identity) {
    if (same.size() > 1) comparison.identities.push_back(same_mathematics(runs, identity, same));
  }
  return comparison;
}

nlohmann::json Comparison::json(const std::vector<RunFacts>& runs) const {
  using Json = nlohmann::json;
  Json folders = Json::array(), same = Json::array();
  for (const RunFacts& run : runs) folders.push_back(run.folder.string());
  const auto table = [](const std::vector<ComparedValue>& list) {
    Json json = Json::object();
    for (const ComparedValue& compared : list) json[compared.key] = compared.values;
    return json;
  };
  Json metric_values = Json::object();
  for (const ComparedValue& compared : metrics) {
    for (const RunFacts& run : runs) {
      // Null where a run lacks the metric: every list has one element a run.
      const auto value = run.number(compared.key);
      metric_values[compared.key].push_back(value ? Json(*value) : Json());
    }
  }
  for (const SameMathematics& group : identities) {
    Json& json = same.emplace_back(group.agreement.json());
    // "runs" here are places in the list of folders.
    json.update({{"identity", group.identity}, {"runs", group.runs}});
  }
  return {{"runs", folders},
          {"settings", table(settings)},
          {"facts", table(facts)},
          {"metrics", metric_values},
          {"identities", same}};
}

}  // namespace headroom
