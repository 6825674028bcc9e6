// Which checkpoint of a run a command was asked to take.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// `word`: best, last, or the path of a checkpoint folder. Error(bad_input, component) where the run has none yet.
std::filesystem::path chosen_checkpoint(const std::filesystem::path& run, const std::string& word,
                                        const std::string& component);

}  // namespace headroom
