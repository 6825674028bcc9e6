#include "train/setup.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "arrays/array_session.hpp"
#include "arrays/open_files.hpp"
#include "config/digest.hpp"
#include "config/identity.hpp"
#include "config/precision.hpp"
#include "config/rescue.hpp"
#include "data/cache_session.hpp"
#include "data/normalized_copies.hpp"
#include "data/services.hpp"
#include "memory/cores.hpp"
#include "mutex.hpp"
#include "plugins/describe.hpp"
#include "plugins/library.hpp"
#include "train/precision.hpp"
#include "train/recompute.hpp"
#include "train/retry.hpp"
#include "train/threads.hpp"

namespace headroom {

namespace {

// LibTorch's generator is the process's, and a model draws its first weights from it.
Mutex generator_mutex;

at::Device pick_device(const std::string& wanted) {
  const bool cuda = at::hasCUDA() && torch::cuda::is_available();
  if (wanted == "cpu" || (wanted == "auto" && !cuda)) return at::kCPU;
  if (!cuda) {
    throw Error(Exit::bad_input, "experiment.device",
                "'" + wanted + "' was asked for, but this LibTorch sees no CUDA device: use \"cpu\" or \"auto\"");
  }
  at::Device device(wanted == "auto" ? "cuda" : wanted);
  if (!device.has_index()) device.set_index(0);
  if (device.index() >= torch::cuda::device_count()) {
    throw Error(Exit::bad_input, "experiment.device",
                "'" + wanted + "' was asked for, but there are " + std::to_string(torch::cuda::device_count()) +
                    " CUDA devices");
  }
  return device;
}

// Which build of a library it is.
nlohmann::json file_id(const std::filesystem::path& file) {
  const FileIdentity identity = identify(file.string());
  return {identity.device, identity.inode, identity.size_bytes, identity.modified_s, identity.modified_ns};
}

// The options of the data that say what is read, without where it lies: the content id stands for that.
nlohmann::json mathematical_options(const OptionTable& table, const OptionValues& values) {
  OptionTable kept;
  OptionValues kept_values;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].type == OptionType::path) continue;
    kept.push_back(table[i]);
    kept_values.push_back(values[i]);
  }
  std::ostringstream text;
  text << options_to_toml(kept, kept_values);
  return text.str();
}

// Opened, and what it opens looked at.
std::shared_ptr<const Source> open_source(Setup& setup) {
  const LayoutCensus census(*setup.session->arrays);
  auto source = Source::open(*setup.source_library, setup.data_options, setup.session);
  setup.stored = census.total();
  return source;
}

// In all of its splits.
uint64_t samples_of(const Source& source) {
  uint64_t samples = 0;
  for (uint32_t split = 0; split < source.splits().size(); ++split) samples += source.length(split);
  return samples;
}

uint64_t groups_of(const Source& source) {
  uint64_t groups = 0;
  for (uint32_t split = 0; split < source.splits().size(); ++split) groups += source.groups(split).size();
  return groups;
}

}  // namespace

MicroBatch Setup::micro_batch() const {
  const TrainSection& train = experiment->train;
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

Advice Setup::advice() const { return {*experiment, why_whole(), !model->recompute_kinds().empty()}; }

int64_t Setup::window_samples() const {
  return experiment->train.batch_size * experiment->train.gradient_accumulation_steps;
}

uint64_t Setup::samples_per_epoch() const {
  const uint64_t all = splits.train.length();
  const auto window = static_cast<uint64_t>(window_samples());
  return experiment->train.drop_last ? all / window * window : all;
}

int64_t Setup::windows_per_epoch() const {
  const auto window = static_cast<uint64_t>(window_samples());
  return static_cast<int64_t>((samples_per_epoch() + window - 1) / window);
}

int64_t Setup::epochs() const {
  const TrainSection& train = experiment->train;
  const int64_t windows = std::max<int64_t>(1, windows_per_epoch());
  return train.max_steps > 0 ? std::min(train.epochs, (train.max_steps + windows - 1) / windows) : train.epochs;
}

std::string Setup::resolved_toml() const {
  std::optional<toml::table> data_synth;
  if (synth) data_synth = options_to_toml(synth->table, synth->values);
  DecidedValues decided = {{"data.shuffle", "\"" + order.name + "\""}};
  if (experiment->data.shuffle == "auto" && order.shuffle != Shuffle::grouped)
    decided["data.grouped.runs"] = decided["data.grouped.run_length"] = "";
  if (order.shuffle == Shuffle::grouped) decided["data.grouped.run_length"] = std::to_string(order.grouping.run_length);
  return experiment_to_toml(*experiment, options_to_toml(model_table, model_options),
                            options_to_toml(data_table, data_options), data_synth, decided);
}

nlohmann::json Setup::mathematics() const {
  using Json = nlohmann::json;
  const bool grouped = order.shuffle == Shuffle::grouped;
  const bool coupled = (model->capabilities() & HR_COUPLES_SAMPLES) != 0;
  const Json made = {
      {"model", model->id()},
      {"model_options", mathematical_options(model_table, model_options)},
      {"init", init_id},
      {"content", content_id},
      {"data_options", mathematical_options(data_table, data_options)},
      {"shuffle", order.name},
      {"grouped", grouped ? Json::array({order.grouping.runs, order.grouping.run_length}) : Json()},
      {"batch_size", coupled ? Json(experiment->train.batch_size) : Json()},
  };
  return identity_entries(*experiment, made);
}

std::string Setup::identity() const { return Digest().add(mathematics().dump()).hex(); }

bool Setup::lower_wins(const std::string& metric) const {
  const std::string& better = experiment->experiment.better;
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

LoaderOptions Setup::loader_options(bool training) const {
  const DataSection& data = experiment->data;
  LoaderOptions options;
  options.seed = experiment->experiment.seed;
  options.batch_size = experiment->train.batch_size;
  options.samples_per_epoch = training ? static_cast<int64_t>(samples_per_epoch()) : -1;
  options.epochs = training ? epochs() : 1;
  options.shuffle = training ? order.shuffle : Shuffle::sequential;
  options.grouping = order.grouping;
  options.augment = training;
  options.num_workers = data.num_workers;
  options.prefetch_factor = data.prefetch_factor;
  options.prefetch_bytes = data.prefetch_size_bytes;
  if (!training) options.disk_ahead_bytes = evaluation_disk_ahead_bytes;
  options.persistent_workers = data.persistent_workers;
  options.skip_bad_samples = data.on_bad_sample == "skip";
  if (data.cache_size_bytes > 0 && (!training || !source->augments())) options.keep_samples = cache_setting().samples;
  return options;
}

StatisticsRequest Setup::statistics_request() const {
  const DataSection& data = experiment->data;
  const nlohmann::json reads_as = {source->id(), file_id(source_library->path()),
                                   mathematical_options(data_table, data_options)};
  return {.source = *source,
          .train = splits.train,
          .mode = data.normalize,
          .max_samples = data.max_samples_for_normalize,
          .skip_bad_samples = data.on_bad_sample == "skip",
          .content_id = content_id,
          .reads_as = reads_as.dump()};
}

Normalizer Setup::left_to_apply(const Normalizer& normalizer) const { return normalizer.without(standardised_fields); }

CacheSetting Setup::cache_setting() const {
  const DataSection& data = experiment->data;
  CacheSetting setting;
  setting.limit_bytes = data.cache_size_bytes;
  setting.global_shuffle = order.shuffle == Shuffle::global;
  // A sample comes once an epoch, whatever the order; blocks that neighbours share come again soon where they are
  // grouped.
  setting.samples = data.cache_policy == "lru" ? CachePolicy::lru : CachePolicy::planned;
  setting.blocks = data.cache_policy == "planned" || (data.cache_policy == "auto" && setting.global_shuffle)
                       ? CachePolicy::planned
                       : CachePolicy::lru;
  setting.augments = source->augments();
  setting.source = source->id();
  setting.train_samples = samples_per_epoch();
  setting.val_samples = splits.val.length();
  for (const Field& field : source->fields()) setting.sample_bytes += field.bytes();
  return setting;
}

int64_t Setup::expected_cache_bytes() const {
  const CacheSetting setting = cache_setting();
  if (setting.augments) return setting.limit_bytes;  // the source's own blocks may fill it
  const double samples = static_cast<double>(setting.train_samples + setting.val_samples);
  return static_cast<int64_t>(
      std::min(static_cast<double>(setting.limit_bytes), samples * static_cast<double>(setting.sample_bytes)));
}

std::vector<MetricInfo> Setup::metrics() const {
  std::vector<MetricInfo> all = model->metrics();
  const std::vector<MetricInfo> hosts = host_metrics(output_pairs);
  all.insert(all.end(), hosts.begin(), hosts.end());
  return all;
}

OutputMetrics Setup::output_metrics() const {
  return OutputMetrics(output_pairs,
                       experiment->metrics.mode == "full" ? OutputMetrics::Keep::outputs : OutputMetrics::Keep::sums);
}

MetricSample Setup::metric_sample(const Loader& loader, bool training, int64_t epoch) const {
  if (output_pairs.empty()) return {};
  const MetricsSection& section = experiment->metrics;
  const uint64_t batches = loader.batches_per_epoch();
  const int64_t sampled = training ? section.train_batches : section.eval_batches;
  return {batches, section.mode == "sampled" ? static_cast<uint64_t>(sampled) : batches, experiment->experiment.seed,
          static_cast<uint64_t>(training ? epoch : 0)};
}

Setup prepare_data(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Setup setup;
  setup.experiment = &experiment;
  setup.threads = experiment.experiment.threads > 0 ? experiment.experiment.threads : auto_threads();
  at::set_num_threads(setup.threads);
  setup.device = pick_device(experiment.experiment.device);

  const Library model_library = Library::load(find_plugin(experiment.model_plugin, plugin_dirs));
  const Library source_library = Library::load(find_plugin(experiment.data.source, plugin_dirs));
  if (model_library.model_torch() == nullptr) {
    throw Error(Exit::bad_input, "model.plugin", "'" + experiment.model_plugin + "' is not a model plugin");
  }
  if (source_library.datasource() == nullptr) {
    throw Error(Exit::bad_input, "data.source", "'" + experiment.data.source + "' is not a datasource plugin");
  }
  setup.model_table = to_option_table(model_library.model_torch()->options);
  setup.data_table = to_option_table(source_library.datasource()->options);
  const std::string model = "model '" + model_library.id() + "'", source = "datasource '" + source_library.id() + "'";
  setup.model_options = check_options(setup.model_table, &experiment.model_options, "model.options", model);
  setup.data_options = check_options(setup.data_table, &experiment.data_options, "data.options", source);
  if (experiment.rescue) {
    check_rung_options(setup.model_table, *experiment.rescue, "model.options", model);
    check_rung_options(setup.data_table, *experiment.rescue, "data.options", source);
  }
  check_recompute(experiment.memory.recompute, model_library);
  setup.model_library = model_library;
  setup.source_library = source_library;

  setup.synth = check_synth(source_library, experiment);
  if (const auto written = synthesise_missing(source_library, setup.synth, setup.data_table, setup.data_options)) {
    spdlog::info("[data] wrote synthetic data to {}", written->string());
  }
  setup.session = make_session(experiment.data);
  setup.source = open_source(setup);
  setup.content_id = content_id(*setup.source);
  setup.splits = divide(*setup.source, experiment.data);
  setup.order = choose_order(experiment.data, setup.stored, samples_of(*setup.source), groups_of(*setup.source));
  setup.session->cache->plugin_policy = setup.cache_setting().blocks;
  if (setup.samples_per_epoch() == 0) {
    throw Error(Exit::bad_input, "train.drop_last",
                "no whole window of " + std::to_string(setup.window_samples()) + " samples fits the " +
                    std::to_string(setup.splits.train.length()) +
                    " training samples: lower train.batch_size or unset train.drop_last");
  }
  return setup;
}

void read_normalized_copies(Setup& setup, const Normalizer& normalizer,
                            const std::function<void(const std::string& line)>& say) {
  const NormalizedCopies copies = use_normalized_copies(
      setup.source, normalizer, [&] { return Source::open(*setup.source_library, setup.data_options, setup.session); },
      say);
  for (const std::string& line : copies.lines) say(line);
  setup.source = copies.source;
  setup.standardised_fields = copies.fields;
}

void build_model(Setup& setup) {
  const Experiment& experiment = *setup.experiment;
  with_one_retry("the model", Owner::parameters, setup.device, Advice(experiment, "", /*recomputes=*/false), [&] {
    start_compute_threads(setup.threads);
    const MutexLock alone(generator_mutex);
    torch::manual_seed(experiment.experiment.seed);
    setup.model = std::make_unique<Model>(*setup.model_library, setup.model_options, setup.source->fields(),
                                          experiment.experiment.seed, *setup.session);
    const std::string& precision = experiment.train.precision;
    check_precision(precision, capability_names(setup.model->capabilities()), setup.model->id());
    setup.dtype = parameter_dtype(precision);
    setup.model->to(setup.device, setup.dtype);
    setup.model->autocast(autocast_dtype(precision));
  });
  setup.output_pairs = pair_outputs(setup.model->id(), setup.model->outputs(), setup.model->metrics());
  setup.lower_wins(experiment.experiment.metric);
}

Setup prepare(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Setup setup = prepare_data(experiment, plugin_dirs);
  build_model(setup);
  return setup;
}

}  // namespace headroom
