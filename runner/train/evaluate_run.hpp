// `headroom evaluate`: loss and metrics of a trained model on one split.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

struct EvaluateRequest {
  std::filesystem::path run;  // a run folder
  std::string split = "val";
  std::string checkpoint = "best";  // best | last | path of a checkpoint folder
  std::vector<Override> overrides;
  std::vector<std::filesystem::path> plugin_dirs;
  bool json = false;
};

// Prints the split's loss and metrics on stdout, with the averaged weights where the checkpoint has them. Exit::ok, or
// what a signal asked for. Error(bad_input) where there is no such run, checkpoint or split. [control]
Exit evaluate_run(const EvaluateRequest& request);

}  // namespace headroom
