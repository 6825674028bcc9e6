// The checks of `headroom plugins check --with FILE`, for authors of models: the model of an experiment steps through a
// few samples of its data. They find what a run would train on without a word: a mean in place of a sum, draws that no
// key decides, evaluation that leaves something behind.
#pragma once

#include <filesystem>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/check_list.hpp"

namespace headroom {

// Runs the checks in order. Error where the experiment cannot begin: bad_input, plugin, data. [control]
std::vector<CheckResult> check_model(const std::filesystem::path& experiment, const std::vector<Override>& overrides,
                                     const std::vector<std::filesystem::path>& plugin_dirs);

}  // namespace headroom
