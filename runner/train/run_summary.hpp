// How a run ends: its last events, summary.json, and the result on stdout.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/run_folder.hpp"
#include "train/loop.hpp"

namespace headroom {

// The run has ended as `exit` says: that goes into the log, summary.json and onto stdout. [control]
void conclude(const Setup& setup, const TrainingLoop& loop, const RunFolder& folder, RunLog& log, Exit exit);

// The run has ended with `problem`: that goes into the log and summary.json. Never throws an Error of its own.
// [control]
void record_failure(const Setup& setup, const TrainingLoop& loop, const RunFolder& folder, RunLog& log,
                    const Error& problem);

// A line for each rung of [rescue] that the run took, and whether it changes the mathematics.
std::vector<std::string> rescue_lines(const Setup& setup);

nlohmann::json scalars_json(const Scalars& values);  // {"val/loss": 0.25, ...}

// Of the metric behind "val/rmse"; "" where it has none.
std::string unit_of(const Setup& setup, const std::string& name);

}  // namespace headroom
