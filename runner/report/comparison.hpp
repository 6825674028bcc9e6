// Runs side by side: in which settings they differ, and whether runs that should agree do.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "report/run_facts.hpp"

namespace headroom {

// Runs of one identity have the same mathematics: how far their metrics are apart, and how far rounding
// usually takes them apart. It grows with every step, so a larger difference after many steps proves nothing.
struct Agreement {
  std::string metric;             // the one that differs most, "" where all are equal
  double largest_difference = 0;  // of it, relative
  double tolerance = 0;           // that rounding explains
  int64_t compared = 0;           // metrics that all of them have
  bool agrees() const { return largest_difference <= tolerance; }
  // "metric", "largest_difference", "tolerance", "compared", "agrees"
  nlohmann::json json() const;
};

using Metrics = std::map<std::string, double>;  // "val/loss"

// Every metric of every run against the first one's. REQUIRES: at least one.
Agreement agreement_of(std::span<const Metrics> runs, double tolerance);

// Relative; what rounding usually becomes when training carries it on, by train.precision.
double rounding_tolerance(const std::string& precision);

struct ComparedValue {
  std::string key;
  std::vector<std::string> values;  // one a run, "" where it has none
};

// Runs of one identity.
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
