// report.html of a sweep: heat maps over the keys that were swept, the Pareto front, every trial.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Error(bad_input) where results.json is missing or damaged.
std::string sweep_report(const std::filesystem::path& sweep);

// Writes report.html into the sweep's folder. Error(cannot_write), Error(bad_input).
void write_sweep_report(const std::filesystem::path& sweep);

}  // namespace headroom
