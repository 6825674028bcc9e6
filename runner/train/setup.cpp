#include "train/setup.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/digest.hpp"
#include "config/identity.hpp"
#include "config/rules.hpp"
#include "config/user_cache.hpp"
#include "data/field_statistics.hpp"
#include "memory/process_memory.hpp"
#include "mutex.hpp"
#include "plugins/describe.hpp"
#include "train/compute.hpp"
#include "train/parameter_groups.hpp"
#include "train/precision.hpp"
#include "train/retry.hpp"

namespace headroom {

namespace {

// LibTorch's generator is the process's, and a model draws its first weights from it.
Mutex generator_mutex;

std::unique_ptr<Model> make_model(const RunData& data) {
  const Experiment& experiment = data.experiment;
  std::unique_ptr<Model> model;
  // What the model can do is not known yet, so the advice leaves that out.
  const Advice advice(experiment, "", /*recomputes=*/false);
  with_one_retry("the model", Owner::parameters, data.device, advice, [&] {
    start_compute_threads(data.threads);
    const MutexLock alone(generator_mutex);
    // Within the attempt: a second one draws the same weights.
    torch::manual_seed(experiment.experiment.seed);
    model = std::make_unique<Model>(data.model_library, data.model_options,
                                    delivered_fields(data.source->fields(), experiment.data.normalize != "off"),
                                    experiment.experiment.seed, *data.session);
    const std::string& precision = experiment.train.precision;
    // Only a model that is built tells its capabilities.
    check_precision(precision, capability_names(model->capabilities()), model->id());
    // Built on the CPU in float32 and moved: the weights of a seed are the same for every device.
    model->to(data.device, parameter_dtype(precision));
    model->autocast(autocast_dtype(precision));
  });
  apply_groups(experiment.train.groups, model->parameters(), model->id());
  return model;
}

// Which evaluations decide the rate of the plateau schedule, and what they measure; null under any other.
nlohmann::json judged_by_plateau(const Experiment& experiment) {
  if (experiment.train.schedule.name != "plateau") return nullptr;
  const auto& early = experiment.train.early_stop;
  const MetricsSection& metrics = experiment.metrics;
  nlohmann::json judged = {experiment.experiment.metric, experiment.experiment.better, experiment.eval.every_epochs,
                           early ? early->min_delta : 0.0};
  // Of a sample another number of batches is another value.
  if (metrics.mode == "sampled") judged.push_back({metrics.train_batches, metrics.eval_batches});
  return judged;
}

// Measured only where that can decide: large products, in float32.
MatmulChoice matmul_of(const RunData& data, Model& model) {
  const std::string& wanted = data.experiment.experiment.matmul;
  if (data.device.is_cuda()) return choose_matmul(wanted, true, {});
  std::vector<int64_t> matrices;
  for (const Parameter& parameter : model.parameters())
    if (parameter.tensor->dim() == 2) matrices.push_back(parameter.tensor->numel());
  const bool many_rows = (model.capabilities() & HR_MODEL_MANY_ROWS) != 0;
  const bool asks = wanted == "fast" || (wanted == "auto" && are_large(many_rows, matrices));
  if (!asks || data.experiment.train.precision != "fp32") return {};
  MatmulChoice choice;
  const Advice advice(data.experiment, "", /*recomputes=*/false);
  with_one_retry("measuring products of matrices", Owner::scratch, data.device, advice,
                 [&] { choice = choose_matmul(wanted, false, kept_matmul_probe(user_cache("matmul"))); });
  return choice;
}

std::vector<OutputPair> make_pairs(const Model& model, const Source& source) {
  std::vector<OutputPair> pairs = pair_outputs(model.id(), model.outputs(), model.metrics());
  name_classes(pairs, model.id(), source);
  return pairs;
}

}  // namespace

Setup::Setup(const RunData& known, std::string started_from)
    : data(known),
      device(known.device),
      dtype(parameter_dtype(known.experiment.train.precision)),
      init_id(std::move(started_from)),
      model(make_model(known)),
      output_pairs(make_pairs(*model, *known.source)),
      matmul(matmul_of(known, *model)),
      built_bytes(own_held_bytes()) {
  apply_matmul(matmul);
  (void)lower_wins(known.experiment.experiment.metric);  // says so where nobody measures it
}

LoaderOptions Setup::loader_options(bool training) const {
  const LoaderOptions options = data.loader_options(training, built_bytes);
  if (training || !data.evaluates_in_larger_batches() || !indivisible_because().empty()) return options;
  std::vector<int64_t> field_bytes;
  for (const Field& field : data.source->fields()) field_bytes.push_back(field.bytes());
  return in_larger_batches(options, field_bytes);
}

MicroBatch Setup::evaluation_micro_batch() const {
  const MicroBatch training = micro_batch();
  if (!training.adapts()) return training;
  return {std::max(training.size(), loader_options(/*training=*/false).slot_samples()), /*adapts=*/true};
}

MicroBatch Setup::micro_batch() const {
  const TrainSection& train = data.experiment.train;
  if (model->capabilities() & HR_COUPLES_SAMPLES) return {train.batch_size, /*adapts=*/false};
  // A number in the file is kept: results are then bit-equal at any limit.
  if (train.micro_batch > 0) return {train.micro_batch, /*adapts=*/false};
  return {train.batch_size, /*adapts=*/!(model->capabilities() & HR_RNG_GENERATOR)};
}

std::string Setup::indivisible_because() const {
  if (model->capabilities() & HR_COUPLES_SAMPLES) {
    return "model '" + model->id() + "' couples the samples of a batch, so a batch is never divided";
  }
  if (model->capabilities() & HR_RNG_GENERATOR) {
    return "model '" + model->id() +
           "' draws from the sequential generator, so a micro-batch is repeated but never resized";
  }
  return "";
}

Advice Setup::advice() const { return {data.experiment, indivisible_because(), !model->recompute_kinds().empty()}; }

nlohmann::json Setup::mathematics() const {
  using Json = nlohmann::json;
  const bool grouped = data.order.shuffle == Shuffle::grouped;
  const bool coupled = (model->capabilities() & HR_COUPLES_SAMPLES) != 0;
  // Entries that are null are left out of the identity.
  const Json made = {
      {"model", model->id()},
      {"model_options", options_without_paths(data.model_table, data.model_options)},
      {"model_files", data.model_files.empty() ? Json() : Json(data.model_files)},
      {"init", init_id},
      {"content", data.content_id},
      {"data_options", options_without_paths(data.data_table, data.data_options, data.source_library.cost_options())},
      {"optimizer_options",
       data.optimizer ? Json(options_without_paths(data.optimizer->table(), data.optimizer->options())) : Json()},
      {"shuffle", data.order.name},
      {"grouped", grouped ? Json::array({data.order.grouping.runs, data.order.grouping.run_length}) : Json()},
      {"plateau", judged_by_plateau(data.experiment)},
      {"matmul", matmul.changes_mathematics ? Json(matmul.name()) : Json()},
      {"batch_size", coupled ? Json(data.experiment.train.batch_size) : Json()},
  };
  Json entries = identity_entries(data.experiment, made);
  // By its id, independent of the path of its library.
  if (data.optimizer) entries.at("optimizer").at(0) = data.optimizer->id();
  return entries;
}

std::string Setup::identity() const { return Digest().add(mathematics().dump()).hex(); }

bool Setup::lower_wins(const std::string& metric) const {
  const std::string& better = data.experiment.experiment.better;
  const bool known_split = metric.starts_with("train/") || metric.starts_with("val/");
  const std::string name = metric.substr(metric.find('/') + 1);
  // "auto": a loss is better when it is lower.
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
  const bool full = data.experiment.metrics.mode == "full";
  return OutputMetrics(output_pairs, full ? OutputMetrics::Keep::outputs : OutputMetrics::Keep::sums, device);
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
