// The parts of a post-mortem that come from a run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "memory/black_box.hpp"

namespace headroom {

inline constexpr const char* postmortem_file = "postmortem.json";

int64_t now_ms();  // since the epoch
// Of a run of several processes: where another than the first leaves what only it knows.
std::filesystem::path rank_folder(const std::filesystem::path& run, int rank);

std::string time_of(int64_t ms);

// "where", "held", "growing" and the knob under "advice". `end_ms`: when the run ended, where somebody saw it.
void add_black_box(nlohmann::json& json, const BlackBoxReading& box, std::optional<int64_t> end_ms);

// "run", and how to go on under "advice".
void add_resume(nlohmann::json& json, const std::filesystem::path& run);

// summary.json, null when it is that of an earlier life of the run: written before `started_ms`, when this one began.
nlohmann::json summary_since(const std::filesystem::path& run, int64_t started_ms);

}  // namespace headroom
