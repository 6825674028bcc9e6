// What a sweep came to, without what may differ from one sweep to the next: times, folders, memory.
#pragma once

#include "trial_run.hpp"

namespace headroom {

inline nlohmann::json sweep_outcome(const std::filesystem::path& sweep) {
  using Json = nlohmann::json;
  Json outcome = Json::array();
  const Json results = read_json(sweep / "results.json");
  for (const Json& trial : results.at("trials")) {
    const std::filesystem::path run = sweep / trial.value("run", "none");
    outcome.push_back(
        {{"id", trial.at("id")},
         {"state", trial.at("state")},
         {"why", trial.value("why", "")},
         {"identity", trial.value("identity", "")},
         {"metric", trial.value("metric", Json())},
         {"epochs", trial.value("epochs", Json())},
         {"rung_metrics", trial.value("rung_metrics", Json())},
         {"metrics", std::filesystem::exists(run) ? read_json(run / "summary.json").at("metrics") : Json()}});
  }
  return outcome;
}

}  // namespace headroom
