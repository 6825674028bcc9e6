// A run's scalars as a table that spreadsheets and data frames open: a row a step, a column a metric.
#pragma once

#include <cstdio>
#include <filesystem>

namespace headroom {

// Both read events.jsonl a line at a time, a run of any length. Error(bad_input) without one.
void export_csv(const std::filesystem::path& run, std::FILE* out);
void export_jsonl(const std::filesystem::path& run, std::FILE* out);  // {"step": 50, "epoch": 1, "train/loss": 0.6}

}  // namespace headroom
