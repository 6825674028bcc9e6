// The trainer's commands other than `run`, each defined in a file of its own: `headroom validate`, `evaluate`,
// `predict` and `plugins check`. Two larger ones have their own headers: parity.hpp and export_script.hpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/check_list.hpp"
#include "plugins/library.hpp"

namespace headroom {

// `headroom validate`: checks that a run of the experiment could begin. Builds everything that a run needs up to the
// first batch, then frees it. Prints JSON on stdout: fields, samples, parameters, the run's identity, and how balanced
// the classes are that the model tells apart. Returns Exit::ok, or throws the Error that a run would end with.
// [control]
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

// Prints the loss and metrics of the split on stdout. Uses the averaged weights where the checkpoint has them. Returns
// Exit::ok, or the exit code that a signal asked for. Error(bad_input) where the run, the checkpoint or the split does
// not exist. [control]
Exit evaluate_run(const EvaluateRequest& request);

// `headroom predict`: the predictions of a run's model on one recording.
struct PredictRequest {
  std::filesystem::path run;        // a run folder
  std::filesystem::path input;      // a recording in the layout of the run's datasource
  std::string checkpoint = "best";  // best | last | path of a checkpoint folder
  std::filesystem::path out;        // empty: <run>/predictions/<name of the input>
  std::vector<Override> overrides;
  std::vector<std::filesystem::path> plugin_dirs;
  bool json = false;
};

// Writes predictions.safetensors, and prediction.html where both the model and the datasource offer headroom.predict/1.
// Prints the errors of the predictions, or what was written, on stdout. An output folder that stays empty is removed.
// Returns Exit::ok, or the exit code that a signal asked for. Error(bad_input) where the run, the checkpoint or the
// input does not exist; Error(plugin) where the model's predictions do not match the source's fields. [control]
Exit predict_run(const PredictRequest& request);

// The checks of `headroom plugins check` that step a model, for authors of models. They use a few samples of an
// experiment's data (--with), or made-up samples. They find mistakes that a run would train with silently: a mean where
// a sum is due, random draws that do not depend on the sample key, evaluation that changes the model.
//
// Runs the checks of the experiment's source, then those of its model. Error where the experiment cannot begin:
// bad_input, plugin, data. [control]
std::vector<CheckResult> check_model(const std::filesystem::path& experiment, const std::vector<Override>& overrides,
                                     const std::vector<std::filesystem::path>& plugin_dirs);

// The same without an experiment, on made-up samples of the fields that the model's inputs() names. `overrides` set
// model.options. A model that does not name its inputs, or refuses the made-up ones, is not stepped; the result is then
// one line that says why. Error(bad_input) for a wrong override. REQUIRES: a model. [control]
std::vector<CheckResult> check_model_alone(const Library& library, const std::vector<Override>& overrides);

}  // namespace headroom
