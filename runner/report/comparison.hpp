// Runs side by side: in which settings they differ, and whether runs that should agree do.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/agreement.hpp"
#include "report/run_facts.hpp"

namespace headroom {

struct ComparedValue {
  std::string key;
  std::vector<std::string> values;  // one a run, "" where it has none
};

// Runs of one identity: a difference beyond rounding is a mistake of somebody's.
struct SameMathematics {
  std::string identity;
  std::vector<size_t> runs;  // their numbers
  Agreement agreement;
};

struct Comparison {
  std::vector<ComparedValue> settings;  // only those that differ
  std::vector<ComparedValue> facts;     // state, steps, memory, speed
  std::vector<ComparedValue> metrics;
  std::vector<SameMathematics> identities;  // of two runs or more
  nlohmann::json json(const std::vector<RunFacts>& runs) const;
};

// Runs of one identity are compared only where both took the same steps and ended well.
Comparison compare_runs(const std::vector<RunFacts>& runs);

}  // namespace headroom
