// Why a run ended: postmortem.json in its folder, and five lines. Made from what the supervisor saw and the black box
// recorded; from the black box alone where the supervisor was killed too.
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

// Reports how the trainer ended: writes postmortem.json into its run folder unless all went well, and prints five lines
// on stderr where a signal ended it. Returns the exit code.
int conclude(const Ended& ended);

// What is known of a run: its postmortem.json; without one, that it ended well, that it is running, or what its black
// box says. A damaged postmortem.json is reported. Error(bad_input) when `run` is not a run folder.
Postmortem read_postmortem(const std::filesystem::path& run);

// Removes the post-mortem of a run that begins or resumes. [control]
void forget_postmortem(const std::filesystem::path& run);

// The parts of a post-mortem that come from a run's folder.

inline constexpr const char* postmortem_file = "postmortem.json";

int64_t now_ms();  // since the epoch
// Of a run of several processes: where another than the first leaves what only it knows.
std::filesystem::path rank_folder(const std::filesystem::path& run, int rank);

std::string time_of(int64_t ms);

// Adds "where", "held", "growing" and the key to change under "advice". `end_ms`: when the run ended, where that was
// seen.
void add_black_box(nlohmann::json& json, const BlackBoxReading& box, std::optional<int64_t> end_ms);

// Adds "run", and how to resume under "advice".
void add_resume(nlohmann::json& json, const std::filesystem::path& run);

// summary.json of the run; null when it was written before `started_ms`, by an earlier process of the run.
nlohmann::json summary_since(const std::filesystem::path& run, int64_t started_ms);

}  // namespace headroom
