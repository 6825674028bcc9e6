// Reads a run's folder once, from front to back and in constant memory: a run of a week has gigabytes of logs.
#pragma once

#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/decimated.hpp"

namespace headroom {

struct MetricCurve {
  std::string name;  // "train/loss"
  Decimated<Extremes> points;
};

// For each column, the moment at which the run held most.
struct HeldMoment {
  std::vector<double> owner_bytes;  // in the order of MemoryCurve::owners; shorter where later owners came after it
  double held_bytes = 0;
  void absorb(const HeldMoment& later) {
    if (later.held_bytes > held_bytes) *this = later;
  }
};

struct MemoryCurve {
  std::vector<std::string> owners;  // "parameters", ..., "other"
  Decimated<HeldMoment> moments;    // over seconds in which the run ran
};

struct Occurrences {
  int64_t count = 0;
  void absorb(const Occurrences& later) { count += later.count; }
};

// Events of one kind.
struct EventKind {
  std::string kind;           // "out_of_memory"
  Decimated<Occurrences> at;  // over seconds in which the run ran
  int64_t count = 0;
  std::vector<nlohmann::json> first;
  std::deque<nlohmann::json> last;  // those after `first`, the earlier ones dropped
};

struct RunReading {
  std::filesystem::path folder;
  nlohmann::json summary;  // null where the run did not get that far
  nlohmann::json start;    // the event; null likewise
  std::string experiment_toml;
  std::vector<MetricCurve> metrics;  // in the order of their appearance
  MemoryCurve memory;
  std::vector<EventKind> events;  // without scalars
  int64_t limit_bytes = 0;        // 0: none, or not known
  int64_t torn_lines = 0;         // lines of the logs that could not be read
  int64_t metrics_left_out = 0;   // beyond the first 256
  std::vector<std::string> postmortem;
  bool ended_badly = false;

  const MetricCurve* metric(const std::string& name) const;
};

// Error(bad_input) where `folder` is not a run's. Missing or torn files leave their part empty.
RunReading read_run(const std::filesystem::path& folder);

}  // namespace headroom
