// Why a run ended: postmortem.json in its folder, and five lines. From what the supervisor saw and what the black box
// kept; from the black box alone where the supervisor was killed too.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

}  // namespace headroom
