// `headroom validate`: whether a run of an experiment could begin.
#pragma once

#include <filesystem>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

// Builds everything that a run needs up to the first batch and lets go of it; prints what it found as JSON on stdout:
// fields, samples, parameters, the run's identity, how the classes that the model tells apart are balanced. Exit::ok;
// the Error that a run would end with. [control]
Exit check_experiment(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

}  // namespace headroom
