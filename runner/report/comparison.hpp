// Compares runs: the settings in which they differ, and whether runs that should agree do.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "report/run_facts.hpp"

namespace headroom {

// How far the metrics of runs with one identity, and so the same mathematics, are apart, and how far rounding usually
// takes them apart. Rounding differences grow with every step, so a larger difference after many steps proves nothing.
struct Agreement {
  std::string metric;             // the metric that differs most; "" where all are equal
  double largest_difference = 0;  // its relative difference
  double tolerance = 0;           // the difference that rounding explains
  int64_t compared = 0;           // number of metrics that all runs have
  bool agrees() const { return largest_difference <= tolerance; }
  // "metric", "largest_difference", "tolerance", "compared", "agrees"
  nlohmann::json json() const;
};

using Metrics = std::map<std::string, double>;  // "val/loss"

// Compares every metric of every run with that of the first run. REQUIRES: at least one run.
Agreement agreement_of(std::span<const Metrics> runs, double tolerance);

// The relative difference that rounding usually grows to during training, by train.precision.
double rounding_tolerance(const std::string& precision);

struct ComparedValue {
  std::string key;
  std::vector<std::string> values;  // one for each run; "" where it has none
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
  std::vector<SameMathematics> identities;  // those with two runs or more
  nlohmann::json json(const std::vector<RunFacts>& runs) const;
};

// Metrics of runs with one identity are compared only where both took the same number of steps and ended well.
Comparison compare_runs(const std::vector<RunFacts>& runs);

}  // namespace headroom
