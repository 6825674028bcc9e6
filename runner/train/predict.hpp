// `headroom predict`: what the model of a run does on one recording.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

struct PredictRequest {
  std::filesystem::path run;        // a run folder
  std::filesystem::path input;      // a recording in the layout of the run's datasource
  std::string checkpoint = "best";  // best | last | path of a checkpoint folder
  std::filesystem::path out;        // empty: <run>/predictions/<name of the input>
  std::vector<Override> overrides;
  std::vector<std::filesystem::path> plugin_dirs;
  bool json = false;
};

// Leaves predictions.safetensors, and prediction.html where model and datasource offer headroom.predict/1; prints how
// far off the predictions are, or what was written, on stdout. A folder that nothing was written to is removed again.
// Exit::ok, or what a signal asked for. Error(bad_input) where there is no such run, checkpoint or input; Error(plugin)
// where the model's predictions do not suit the source's fields. [control]
Exit predict_run(const PredictRequest& request);

}  // namespace headroom
