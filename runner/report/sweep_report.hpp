// report.html of a sweep: heat maps over the keys that were swept, the Pareto front, every trial.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/sweep_reading.hpp"

namespace headroom {

// Error(bad_input) where results.json is missing or damaged.
std::string sweep_report(const std::filesystem::path& sweep);

// Writes report.html into the sweep's folder. Error(cannot_write), Error(bad_input).
void write_sweep_report(const std::filesystem::path& sweep);

// What a sweep's trials cost for what they reach: the Pareto front of memory against the metric, and what a smaller
// batch with more accumulation costs and saves where the mathematics stay the same.

struct ParetoPoint {
  double cost = 0, value = 0;
};

// The Pareto front: indices of points, by rising cost. A point is on it when no other point costs at most as much and
// is better, or costs less and is as good.
std::vector<size_t> pareto_front(const std::vector<ParetoPoint>& points, bool lower_wins);

// What a smaller batch costs, compared with what the users' guides say: a table for each group of trials of one
// identity that differ in batch size, each trial against the group's largest batch. "" where there is no such group.
std::string trade_off(const SweepReading& sweep);

}  // namespace headroom
