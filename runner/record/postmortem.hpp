// Why a run ended: postmortem.json in its folder, and five lines. From what the supervisor saw and what the black box
// kept; from the black box alone where the supervisor was killed too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "memory/black_box.hpp"
#include "memory/supervisor.hpp"

namespace headroom {

struct Postmortem {
  nlohmann::json json;  // "format": 1; docs/postmortem.md names its keys
  std::vector<std::string> lines() const;
};

// How the trainer ended; leaves postmortem.json in its run folder unless all went well, and prints five lines on stderr
// where a signal ended it. Returns the exit code.
int conclude(const Ended& ended);

// What is known of a run: its postmortem.json, else how it ended well, or goes on, or what its black box says. One that
// is damaged is told of. Error(bad_input) when it is no run folder.
Postmortem read_postmortem(const std::filesystem::path& run);

// A run that begins or goes on has no post-mortem. [control]
void forget_postmortem(const std::filesystem::path& run);

// The parts of a post-mortem that come from a run's folder.

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
