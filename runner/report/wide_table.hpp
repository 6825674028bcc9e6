// A run's scalars as a table for spreadsheets and data frames: a row for each step, a column for each metric.
#pragma once

#include <cstdio>
#include <filesystem>

namespace headroom {

// Both read events.jsonl line by line, for runs of any length. Error(bad_input) where it is missing.
void export_csv(const std::filesystem::path& run, std::FILE* out);
void export_jsonl(const std::filesystem::path& run, std::FILE* out);  // {"step": 50, "epoch": 1, "train/loss": 0.6}

}  // namespace headroom
