#include "train/run_data.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sstream>

#include "arrays/array_session.hpp"
#include "arrays/open_files.hpp"
#include "config/literals.hpp"
#include "config/rescue.hpp"
#include "data/cache_session.hpp"
#include "data/normalized_copies.hpp"
#include "data/services.hpp"
#include "memory/cores.hpp"
#include "plugins/model_files.hpp"
#include "ranks/group.hpp"
#include "train/page_lock.hpp"
#include "train/recompute.hpp"

namespace headroom {

namespace {

at::Device pick_device(const std::string& wanted) {
  const bool cuda = at::hasCUDA() && torch::cuda::is_available();
  if (wanted == "cpu" || (wanted == "auto" && !cuda)) return at::kCPU;
  if (!cuda) {
    throw Error(Exit::bad_input, "experiment.device",
                "'" + wanted + "' was asked for, but this LibTorch sees no CUDA device: use \"cpu\" or \"auto\"");
  }
  at::Device device(wanted == "auto" ? "cuda" : wanted);
  // "cuda" is the first one; memory of a device is asked for by its index.
  if (!device.has_index()) device.set_index(0);
  if (device.index() >= torch::cuda::device_count()) {
    throw Error(Exit::bad_input, "experiment.device",
                "'" + wanted + "' was asked for, but there are " + std::to_string(torch::cuda::device_count()) +
                    " CUDA devices");
  }
  return device;
}

// How many of a window's `accumulation` batches the ranks share at a time: so many that each gets about one; a divisor
// of `accumulation`, so that windows begin where they began.
int64_t batches_shared_in_training(int64_t accumulation, int64_t ranks) {
  for (int64_t batches = ranks; batches < accumulation; ++batches) {
    if (accumulation % batches == 0) return batches;
  }
  return accumulation;
}

// Which build of a library it is.
nlohmann::json file_id(const std::filesystem::path& file) {
  const FileIdentity identity = identify(file.string());
  return {identity.device, identity.inode, identity.size_bytes, identity.modified_s, identity.modified_ns};
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

Library load_model(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Library library = Library::load(find_plugin(experiment.model_plugin, plugin_dirs));
  if (library.model_torch() != nullptr) return library;
  throw Error(Exit::bad_input, "model.plugin", "'" + experiment.model_plugin + "' is not a model plugin");
}

Library load_source(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Library library = Library::load(find_plugin(experiment.data.source, plugin_dirs));
  if (library.datasource() != nullptr) return library;
  throw Error(Exit::bad_input, "data.source", "'" + experiment.data.source + "' is not a datasource plugin");
}

std::shared_ptr<const OptimizerPlugin> load_optimizer(const TrainSection& train,
                                                      const std::vector<std::filesystem::path>& plugin_dirs,
                                                      Session& session) {
  const auto path = find_optimizer(train.optimizer, plugin_dirs);
  if (!path) return nullptr;
  auto optimizer = std::make_shared<const OptimizerPlugin>(Library::load(*path), train, session);
  optimizer->require_precision(train.precision);
  return optimizer;
}

void require_a_window(const RunData& data) {
  if (data.samples_per_epoch() > 0) return;
  throw Error(Exit::bad_input, "train.drop_last",
              "no whole window of " + std::to_string(data.window_samples()) + " samples fits the " +
                  std::to_string(data.splits.train.length()) +
                  " training samples: lower train.batch_size or unset train.drop_last");
}

}  // namespace

std::string options_without_paths(const OptionTable& table, const OptionValues& values) {
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

int64_t RunData::window_samples() const {
  return experiment.train.batch_size * experiment.train.gradient_accumulation_steps;
}

uint64_t RunData::samples_per_epoch() const {
  const uint64_t all = splits.train.length();
  const auto window = static_cast<uint64_t>(window_samples());
  // drop_last drops windows, not batches.
  return experiment.train.drop_last ? all / window * window : all;
}

int64_t RunData::windows_per_epoch() const {
  const auto window = static_cast<uint64_t>(window_samples());
  return static_cast<int64_t>((samples_per_epoch() + window - 1) / window);
}

int64_t RunData::epochs() const {
  const TrainSection& train = experiment.train;
  const int64_t windows = std::max<int64_t>(1, windows_per_epoch());
  return train.max_steps > 0 ? std::min(train.epochs, (train.max_steps + windows - 1) / windows) : train.epochs;
}

std::string RunData::resolved_toml() const {
  std::optional<toml::table> data_synth;
  if (synth) data_synth = options_to_toml(synth->table, synth->values);
  // The run folder says what "auto" came to, so that the run can be repeated elsewhere.
  DecidedValues decided = {{"data.shuffle", "\"" + order.name + "\""}};
  if (experiment.data.shuffle == "auto" && order.shuffle != Shuffle::grouped)
    decided["data.grouped.runs"] = decided["data.grouped.run_length"] = "";
  // Left at 0 it is chosen by how the data is stored, which a copy may change.
  if (order.shuffle == Shuffle::grouped) decided["data.grouped.run_length"] = std::to_string(order.grouping.run_length);
  if (optimizer)
    decided["train.optimizer_options"] = literal(options_to_toml(optimizer->table(), optimizer->options()));
  return experiment_to_toml(experiment, options_to_toml(model_table, model_options),
                            options_to_toml(data_table, data_options), data_synth, decided);
}

LoaderOptions RunData::loader_options(bool training, int64_t built_bytes) const {
  const DataSection& data = experiment.data;
  LoaderOptions options;
  options.seed = experiment.experiment.seed;
  // Of all ranks together. A sample of batches counts them one by one.
  const int64_t ranks = this->ranks().count, accumulation = experiment.train.gradient_accumulation_steps;
  const int64_t together = experiment.metrics.mode == "sampled" ? 1
                           : training                           ? batches_shared_in_training(accumulation, ranks)
                                                                : ranks;
  options.batch_size = experiment.train.batch_size * together;
  options.share = {static_cast<uint64_t>(this->ranks().rank), static_cast<uint64_t>(ranks)};
  options.samples_per_epoch = training ? static_cast<int64_t>(samples_per_epoch()) : -1;
  // Nothing is read ahead after the last epoch; each evaluation is one epoch.
  options.epochs = training ? epochs() : 1;
  options.shuffle = training ? order.shuffle : Shuffle::sequential;
  options.grouping = order.grouping;
  options.augment = training;
  options.num_workers = data.num_workers;
  options.prefetch_factor = data.prefetch_factor;
  options.prefetch_bytes = data.prefetch_size_bytes;
  options.disk_ahead_bytes = disk_ahead_bytes(built_bytes, training);
  options.persistent_workers = data.persistent_workers;
  options.skip_bad_samples = data.on_bad_sample != "fail";
  options.skip_not_finite = data.on_bad_sample == "skip_not_finite";
  if (data.pin_memory && device.is_cuda()) options.page_lock = cuda_page_lock().value_or(PageLock());
  // An augmented sample is another one in each epoch, so keeping it is of no use.
  if (data.cache_size_bytes > 0 && (!training || !source->augments())) options.keep_samples = cache_setting().samples;
  return options;
}

bool RunData::evaluates_in_larger_batches() const {
  return experiment.train.micro_batch == 0 && experiment.metrics.mode != "sampled";
}

Ranks RunData::ranks() const { return group != nullptr ? group->ranks() : Ranks(); }

bool RunData::is_elastic() const {
  return group != nullptr && experiment.train.elastic && group->ranks().elastic;
}

StatisticsRequest RunData::statistics_request() const {
  const DataSection& data = experiment.data;
  // Kept statistics hold only as long as the same code reads the same content in the same way.
  const nlohmann::json reads_as = {source->id(), file_id(source_library.path()),
                                   options_without_paths(data_table, data_options)};
  return {.source = *source,
          .train = splits.train,
          .mode = data.normalize,
          .max_samples = data.max_samples_for_normalize,
          .skip_bad_samples = data.on_bad_sample != "fail",
          .content_id = content_id,
          .reads_as = reads_as.dump()};
}

CacheSetting RunData::cache_setting() const {
  const DataSection& data = experiment.data;
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

int64_t RunData::expected_cache_bytes() const {
  const CacheSetting setting = cache_setting();
  if (setting.augments) return setting.limit_bytes;  // the source's own blocks may fill it
  const double samples = static_cast<double>(setting.train_samples + setting.val_samples);
  return static_cast<int64_t>(
      std::min(static_cast<double>(setting.limit_bytes), samples * static_cast<double>(setting.sample_bytes)));
}

RunData prepare_data(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs, bool trains,
                     std::shared_ptr<RankGroup> group) {
  const int here = group != nullptr ? group->ranks().local_count : 1;
  const int threads =
      experiment.experiment.threads > 0 ? experiment.experiment.threads : std::max(1, auto_threads() / here);
  // Before anything computes: the number of threads decides how sums round.
  at::set_num_threads(threads);
  const at::Device device = pick_device(experiment.experiment.device);
  std::optional<DeviceLimit> device_limit;
  if (!device.is_cpu()) device_limit = limit_device_memory(read_device_room(device), experiment.memory.device_limit);

  const Library model_library = load_model(experiment, plugin_dirs);
  const Library source_library = load_source(experiment, plugin_dirs);
  const OptionTable model_table = to_option_table(model_library.model_torch()->options);
  const OptionTable data_table = to_option_table(source_library.datasource()->options);
  const std::string model_text = "model '" + model_library.id() + "'";
  const std::string source_text = "datasource '" + source_library.id() + "'";
  OptionValues model_options = check_options(model_table, &experiment.model_options, "model.options", model_text);
  OptionValues data_options = check_options(data_table, &experiment.data_options, "data.options", source_text);
  if (experiment.rescue) {
    check_rung_options(model_table, *experiment.rescue, "model.options", model_text);
    check_rung_options(data_table, *experiment.rescue, "data.options", source_text);
  }
  // What the experiment file gets wrong is told before data is written or opened.
  check_recompute(experiment.memory.recompute, model_library);

  std::shared_ptr<Session> session = make_session(experiment.data);
  auto model_files = model_file_digests(model_library, model_options, *session);
  auto optimizer = trains ? load_optimizer(experiment.train, plugin_dirs, *session) : nullptr;
  if (experiment.rescue && optimizer) {
    check_rung_options(optimizer->table(), *experiment.rescue, "train.optimizer_options",
                       "optimizer '" + optimizer->id() + "'");
  }

  std::optional<SynthOptions> synth = check_synth(source_library, experiment);
  if (const auto written = synthesise_missing(source_library, synth, data_table, data_options)) {
    spdlog::info("[data] wrote synthetic data to {}", written->string());
  }
  const LayoutCensus census(session->arrays);  // of what the source opens
  auto source = Source::open(source_library, data_options, session);
  const StoredLayout stored = census.total();
  // By how the files are stored that the source has just opened.
  OrderChoice order = choose_order(experiment.data, stored, samples_of(*source), groups_of(*source));
  std::string id = content_id(*source);
  Splits splits = divide(*source, experiment.data);

  RunData data{.experiment = experiment,
               .device = device,
               .device_limit = std::move(device_limit),
               .threads = threads,
               .model_library = model_library,
               .source_library = source_library,
               .model_table = model_table,
               .data_table = data_table,
               .model_options = std::move(model_options),
               .data_options = std::move(data_options),
               .model_files = std::move(model_files),
               .synth = std::move(synth),
               .session = std::move(session),
               .optimizer = std::move(optimizer),
               .source = std::move(source),
               .content_id = std::move(id),
               .splits = std::move(splits),
               .stored = stored,
               .order = std::move(order),
               .group = std::move(group)};
  // Only now: the policy follows from the order.
  data.session->cache->plugin_policy = data.cache_setting().blocks;
  require_a_window(data);
  return data;
}

LoaderInput loader_input(const RunData& data, Normalizer measured,
                         const std::function<void(const std::string& line)>& say) {
  if (!data.experiment.data.normalized_cache) return {data.source, measured, measured};
  const NormalizedCopies copies = use_normalized_copies(
      data.source, measured, [&] { return Source::open(data.source_library, data.data_options, data.session); }, say);
  for (const std::string& line : copies.lines) say(line);
  return {copies.source, measured, measured.without(copies.fields)};
}

}  // namespace headroom
