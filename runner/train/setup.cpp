#include "train/setup.hpp"

#include <nlohmann/json.hpp>

#include "config/digest.hpp"
#include "config/precision.hpp"
#include "mutex.hpp"
#include "plugins/describe.hpp"
#include "train/compute.hpp"
#include "train/precision.hpp"
#include "train/retry.hpp"

namespace headroom {

namespace {

// LibTorch's generator is the process's, and a model draws its first weights from it.
Mutex generator_mutex;

std::unique_ptr<Model> make_model(const RunData& data) {
  const Experiment& experiment = data.experiment;
  std::unique_ptr<Model> model;
  const Advice advice(experiment, "", /*recomputes=*/false);
  with_one_retry("the model", Owner::parameters, data.device, advice, [&] {
    start_compute_threads(data.threads);
    const MutexLock alone(generator_mutex);
    torch::manual_seed(experiment.experiment.seed);
    model = std::make_unique<Model>(data.model_library, data.model_options, data.source->fields(),
                                    experiment.experiment.seed, *data.session);
    const std::string& precision = experiment.train.precision;
    check_precision(precision, capability_names(model->capabilities()), model->id());
    model->to(data.device, parameter_dtype(precision));
    model->autocast(autocast_dtype(precision));
  });
  return model;
}

}  // namespace

Setup::Setup(const RunData& known, std::string started_from)
    : data(known),
      device(known.device),
      dtype(parameter_dtype(known.experiment.train.precision)),
      init_id(std::move(started_from)),
      model(make_model(known)),
      output_pairs(pair_outputs(model->id(), model->outputs(), model->metrics())) {
  (void)lower_wins(known.experiment.experiment.metric);  // says so where nobody measures it
}

MicroBatch Setup::micro_batch() const {
  const TrainSection& train = data.experiment.train;
  if (model->capabilities() & HR_COUPLES_SAMPLES) return {train.batch_size, /*adapts=*/false};
  if (train.micro_batch > 0) return {train.micro_batch, /*adapts=*/false};
  return {train.batch_size, /*adapts=*/!(model->capabilities() & HR_RNG_GENERATOR)};
}

std::string Setup::why_whole() const {
  if (model->capabilities() & HR_COUPLES_SAMPLES) {
    return "model '" + model->id() + "' couples the samples of a batch, so a batch is never divided";
  }
  if (model->capabilities() & HR_RNG_GENERATOR) {
    return "model '" + model->id() +
           "' draws from the sequential generator, so a micro-batch is repeated but never resized";
  }
  return "";
}

Advice Setup::advice() const { return {data.experiment, why_whole(), !model->recompute_kinds().empty()}; }

nlohmann::json Setup::mathematics() const {
  const Experiment& e = data.experiment;
  const TrainSection& t = e.train;
  nlohmann::json json = {
      {"model", model->id()},
      {"model_options", options_without_paths(data.model_table, data.model_options)},
      {"init", init_id},
      {"content", data.content_id},
      {"data_options", options_without_paths(data.data_table, data.data_options)},
      {"normalize", {e.data.normalize, e.data.max_samples_for_normalize}},
      {"max_groups", e.data.max_groups.value_or(-1)},
      {"window", data.window_samples()},
      {"seed", e.experiment.seed},
      {"shuffle", data.order.name},
      {"precision", t.precision},
      {"length", {t.epochs, t.max_steps, static_cast<int64_t>(t.drop_last)}},
      {"optimizer",
       {t.optimizer.name, t.optimizer.lr, t.optimizer.weight_decay, t.optimizer.beta1, t.optimizer.beta2,
        t.optimizer.eps, t.optimizer.momentum, t.optimizer.nesterov}},
      {"schedule",
       {t.schedule.name, t.schedule.warmup_epochs, t.schedule.warmup_steps, t.schedule.min_lr, t.schedule.step_epochs,
        t.schedule.gamma}},
      {"clip_norm", t.clip_norm},
      {"ema_decay", t.ema_decay},
      {"passes_over", {t.on_nonfinite, e.data.on_bad_sample}},
  };
  if (t.early_stop) {
    json["early_stop"] = {t.early_stop->patience, t.early_stop->min_delta, e.experiment.metric, e.experiment.better};
  }
  if (data.order.shuffle == Shuffle::grouped)
    json["grouped"] = {data.order.grouping.runs, data.order.grouping.run_length};
  if (e.data.split) json["split"] = {e.data.split->train, e.data.split->val, e.data.split->test, e.data.split->seed};
  if (model->capabilities() & HR_COUPLES_SAMPLES) json["batch_size"] = t.batch_size;
  return json;
}

std::string Setup::identity() const { return Digest().add(mathematics().dump()).hex(); }

bool Setup::lower_wins(const std::string& metric) const {
  const std::string& better = data.experiment.experiment.better;
  const bool known_split = metric.starts_with("train/") || metric.starts_with("val/");
  const std::string name = metric.substr(metric.find('/') + 1);
  if (known_split && name == "loss") return better != "higher";
  std::string known = "loss";
  for (const MetricInfo& info : metrics()) {
    if (known_split && info.name == name) return better == "auto" ? info.better == HR_LOWER : better == "lower";
    known += ", " + info.name;
  }
  throw Error(Exit::bad_input, "experiment.metric",
              "'" + metric + "' is not measured: use train/ or val/ followed by one of " + known);
}

std::vector<MetricInfo> Setup::metrics() const {
  std::vector<MetricInfo> all = model->metrics();
  const std::vector<MetricInfo> hosts = host_metrics(output_pairs);
  all.insert(all.end(), hosts.begin(), hosts.end());
  return all;
}

OutputMetrics Setup::output_metrics() const {
  return OutputMetrics(
      output_pairs, data.experiment.metrics.mode == "full" ? OutputMetrics::Keep::outputs : OutputMetrics::Keep::sums);
}

MetricSample Setup::metric_sample(const Loader& loader, bool training, int64_t epoch) const {
  if (output_pairs.empty()) return {};
  const MetricsSection& section = data.experiment.metrics;
  const uint64_t batches = loader.batches_per_epoch();
  const int64_t sampled = training ? section.train_batches : section.eval_batches;
  return {batches, section.mode == "sampled" ? static_cast<uint64_t>(sampled) : batches,
          data.experiment.experiment.seed, static_cast<uint64_t>(training ? epoch : 0)};
}

}  // namespace headroom
