// What a run says of the rungs of [rescue] that it took.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/setup.hpp"

namespace headroom {

// One line for each rung taken. [control] after build_model().
std::vector<std::string> rescue_lines(const Setup& setup);

// {"rungs": how many there are, "keeps_mathematics", "taken": [{"set", "keeps_mathematics"}]}; null without [rescue].
nlohmann::json rescue_json(const Setup& setup);

}  // namespace headroom
