#include "train/model_trial.hpp"

#include <algorithm>
#include <utility>

#include "train/setup.hpp"
#include "train/window.hpp"

namespace headroom {

namespace {

// Enough to divide a batch.
constexpr int64_t most_checked_samples = 4;

// The experiment as it is loaded for one precision and a few samples.
Experiment experiment_of(const ExperimentRequest& request, const std::string& precision) {
  const int64_t batch = load_experiment(request.file, request.overrides).train.batch_size;
  std::vector<Override> overrides = request.overrides;
  // The checks divide batches and recompute calls themselves; without workers no thread is started.
  overrides.insert(overrides.end(), {{"train.precision", precision},
                                     {"train.batch_size", std::to_string(std::min(batch, most_checked_samples))},
                                     {"train.gradient_accumulation_steps", "1"},
                                     {"train.micro_batch", "auto"},
                                     {"data.num_workers", "0"},
                                     {"memory.recompute", "none"}});
  return load_experiment(request.file, overrides);
}

struct LoadedExperiment {
  LoadedExperiment(const ExperimentRequest& request, const std::string& precision)
      : experiment(experiment_of(request, precision)),
        data(prepare_data(experiment, request.plugin_dirs)),
        setup(data) {}

  Batch first_batch() const {
    Loader loader(data.source, data.splits.train, find_statistics(data.statistics_request()).normalizer,
                  setup.loader_options(true));
    loader.seek(0);
    auto batch = loader.next();
    if (!batch || batch->count() == 0)
      throw Error(Exit::data, "check", "the training split has no sample to step with");
    return std::move(*batch);
  }

  const Experiment experiment;
  const RunData data;
  const Setup setup;
};

}  // namespace

ModelTrial::ModelTrial(std::shared_ptr<Model> model, at::Device device, at::ScalarType dtype, Batch batch,
                       Advice advice)
    : model_(std::move(model)),
      device_(device),
      dtype_(dtype),
      batch_(std::move(batch)),
      advice_(std::move(advice)),
      snapshot_(*model_, device) {
  snapshot_.take();
}

Trained ModelTrial::train(int64_t micro_batch) {
  // A fixed size: smaller pieces would not be the ones that a check asks for.
  Retry retry({micro_batch, /*adapts=*/false}, device_, advice_, [](const Shortage&, const std::string&) {});
  snapshot_.restore();
  Window window(model(), device_, dtype_, retry);
  // Past every frozen_until_step but INT64_MAX, which means never.
  window.thaw(INT64_MAX - 1);
  window.begin();
  if (!window.add(batch_, 0)) {
    throw Error(Exit::plugin, model_->id(),
                "there is no memory for a step of " + std::to_string(samples()) + " samples");
  }
  Trained trained{.weight = window.divide(),
                  .gradients = {},
                  .without_gradient = window.check().without_gradient(),
                  .why_untrained = window.check().why_untrained()};
  trained.loss_sum = window.sums().loss_sum();
  trained.loss = window.sums().loss();
  for (const Parameter* parameter : window.trainable()) {
    const at::Tensor& gradient = parameter->tensor->grad();
    trained.gradients.push_back(gradient.defined() ? gradient.clone() : at::zeros_like(*parameter->tensor));
  }
  return trained;
}

StepResult ModelTrial::evaluate(int64_t first, int64_t count) {
  const at::NoGradGuard no_grad;
  const MicroBatchTensors tensors(batch_, first, count, device_, dtype_);
  return model_->step(HR_EVAL, 0, tensors.keys, tensors.fields, /*want_outputs=*/true);
}

std::vector<at::Tensor> ModelTrial::predict(int64_t first, int64_t count, size_t target) {
  const at::NoGradGuard no_grad;
  MicroBatchTensors tensors(batch_, first, count, device_, dtype_);
  tensors.fields[target] = at::Tensor();
  return model_->predict(0, tensors.keys, tensors.fields);
}

std::vector<at::Tensor> ModelTrial::buffers() const {
  std::vector<at::Tensor> copies;
  for (const Parameter& parameter : model_->parameters()) {
    if (parameter.kind == HR_BUFFER) copies.push_back(parameter.tensor->clone());
  }
  return copies;
}

std::unique_ptr<ModelTrial> trial_of_experiment(const ExperimentRequest& request, const std::string& precision) {
  const auto loaded = std::make_shared<const LoadedExperiment>(request, precision);
  const Setup& setup = loaded->setup;
  return std::make_unique<ModelTrial>(std::shared_ptr<Model>(loaded, setup.model.get()), setup.device, setup.dtype,
                                      loaded->first_batch(), setup.advice());
}

}  // namespace headroom
