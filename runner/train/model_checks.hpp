// The checks of `headroom plugins check` that step a model, for authors of models: through a few samples of an
// experiment's data (--with), or of fields that are made up. They find what a run would train on without a word: a mean
// in place of a sum, draws that no key decides, evaluation that leaves something behind.
#pragma once

#include <filesystem>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/check_list.hpp"
#include "plugins/library.hpp"

namespace headroom {

// Runs the checks in order: of what the experiment's source reads, then of its model. Error where the experiment cannot
// begin: bad_input, plugin, data. [control]
std::vector<CheckResult> check_model(const std::filesystem::path& experiment, const std::vector<Override>& overrides,
                                     const std::vector<std::filesystem::path>& plugin_dirs);

// The same without an experiment, with samples of what the model's inputs() names; `overrides` are of model.options. A
// model that does not name its inputs, or refuses what was made up, is not stepped: the one line then says why.
// Error(bad_input) for `overrides`. REQUIRES: a model. [control]
std::vector<CheckResult> check_model_alone(const Library& library, const std::vector<Override>& overrides);

}  // namespace headroom
