// What the trainer does beside a run, a command each: `headroom validate`, `evaluate`, `predict`, `plugins check`.
// Those with more to say have headers of their own: parity.hpp, export_script.hpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/check_list.hpp"
#include "plugins/library.hpp"

namespace headroom {

// `headroom validate`: whether a run of an experiment could begin. Builds everything that a run needs up to the first
// batch and lets go of it; prints what it found as JSON on stdout: fields, samples, parameters, the run's identity, how
// the classes that the model tells apart are balanced. Exit::ok; the Error that a run would end with. [control]
Exit check_experiment(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

// `headroom evaluate`: loss and metrics of a trained model on one split.
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

// `headroom predict`: what the model of a run does on one recording.
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

// The checks of `headroom plugins check` that step a model, for authors of models: through a few samples of an
// experiment's data (--with), or of fields that are made up. They find what a run would train on without a word: a mean
// in place of a sum, draws that no key decides, evaluation that leaves something behind.
//
// Runs the checks in order: of what the experiment's source reads, then of its model. Error where the experiment cannot
// begin: bad_input, plugin, data. [control]
std::vector<CheckResult> check_model(const std::filesystem::path& experiment, const std::vector<Override>& overrides,
                                     const std::vector<std::filesystem::path>& plugin_dirs);

// The same without an experiment, with samples of what the model's inputs() names; `overrides` are of model.options. A
// model that does not name its inputs, or refuses what was made up, is not stepped: the one line then says why.
// Error(bad_input) for `overrides`. REQUIRES: a model. [control]
std::vector<CheckResult> check_model_alone(const Library& library, const std::vector<Override>& overrides);

}  // namespace headroom
