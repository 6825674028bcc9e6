// Runs of one identity have the same mathematics: how far their metrics are apart, and what rounding may make of them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace headroom {

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

// Relative; what rounding becomes when training carries it on, by train.precision.
double rounding_tolerance(const std::string& precision);

}  // namespace headroom
