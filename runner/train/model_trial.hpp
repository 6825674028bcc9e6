// A model on a few samples, for checks that step it again and again from the same weights: with the data of an
// experiment, or with fields that are made up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "data/loader.hpp"
#include "plugins/library.hpp"
#include "plugins/torch_model.hpp"
#include "train/micro_batches.hpp"
#include "train/shortage.hpp"

namespace headroom {

// What a window gave.
struct Trained {
  double loss_sum = 0.0, weight = 0.0;
  double loss = 0.0;  // sum / weight; NaN when nothing counted
  std::vector<at::Tensor> gradients;
  std::vector<std::string> without_gradient;
  std::string why_untrained;  // GradientCheck's
};

// [control]
class ModelTrial {
 public:
  // `model` owns what it was built of and what `advice` refers to.
  ModelTrial(std::shared_ptr<Model> model, at::Device device, at::ScalarType dtype, Batch batch, Advice advice);
  ModelTrial(ModelTrial&&) = delete;

  Model& model() const { return *model_; }
  at::Device device() const { return device_; }
  int64_t samples() const { return static_cast<int64_t>(batch_.count()); }

  // A window in micro-batches of so many samples, from the weights and the state of the beginning. Error(plugin) where
  // the model breaks the contract.
  Trained train(int64_t micro_batch);
  // With outputs.
  StepResult evaluate(int64_t first, int64_t count);
  // Without the field `target`, as where the host predicts. REQUIRES: model().predictor().
  std::vector<at::Tensor> predict(int64_t first, int64_t count, size_t target);
  std::vector<at::Tensor> buffers() const;  // copies

 private:
  std::shared_ptr<Model> model_;
  at::Device device_;
  at::ScalarType dtype_;
  Batch batch_;
  Advice advice_;
  ForwardSnapshot snapshot_;
};

// The model of an experiment at one of the values of train.precision, with the first samples of its training split.
// Error where the experiment cannot begin: bad_input, plugin, data.
struct ExperimentRequest {
  std::filesystem::path file;
  std::vector<Override> overrides;
  std::vector<std::filesystem::path> plugin_dirs;
};
std::unique_ptr<ModelTrial> trial_of_experiment(const ExperimentRequest& request, const std::string& precision);

// A plugin's model on the CPU with made-up samples of the fields that it says it takes. `options` has the values that
// it declares. Error(plugin), or Error with its own sentence where it refuses them. REQUIRES: library.inputs().
std::unique_ptr<ModelTrial> made_up_trial(const Library& library, const OptionValues& options,
                                          const std::string& precision);

}  // namespace headroom
