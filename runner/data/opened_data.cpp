#include "data/opened_data.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sstream>

#include "arrays/open_files.hpp"
#include "data/cache_session.hpp"
#include "data/normalized_copies.hpp"
#include "plugins/find.hpp"

namespace headroom {

namespace {

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

void require_a_window(const OpenedData& data) {
  if (data.samples_per_epoch() > 0) return;
  throw Error(Exit::bad_input, "train.drop_last",
              "no whole window of " + std::to_string(data.window_samples()) + " samples fits the " +
                  std::to_string(data.splits.train.length()) +
                  " training samples: lower train.batch_size or unset train.drop_last");
}

}  // namespace

std::string options_without_paths(const OptionTable& table, const OptionValues& values,
                                  const std::vector<std::string>& costs) {
  OptionTable kept;
  OptionValues kept_values;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].type == OptionType::path || std::ranges::count(costs, table[i].name) > 0) continue;
    kept.push_back(table[i]);
    kept_values.push_back(values[i]);
  }
  std::ostringstream text;
  text << options_to_toml(kept, kept_values);
  return text.str();
}

int64_t OpenedData::window_samples() const {
  return experiment.train.batch_size * experiment.train.gradient_accumulation_steps;
}

uint64_t OpenedData::samples_per_epoch() const {
  const uint64_t all = splits.train.length();
  const auto window = static_cast<uint64_t>(window_samples());
  // drop_last drops windows, not batches.
  return experiment.train.drop_last ? all / window * window : all;
}

int64_t OpenedData::windows_per_epoch() const {
  const auto window = static_cast<uint64_t>(window_samples());
  return static_cast<int64_t>((samples_per_epoch() + window - 1) / window);
}

int64_t OpenedData::epochs() const {
  const TrainSection& train = experiment.train;
  const int64_t windows = std::max<int64_t>(1, windows_per_epoch());
  return train.max_steps > 0 ? std::min(train.epochs, (train.max_steps + windows - 1) / windows) : train.epochs;
}

LoaderOptions OpenedData::loader_options(bool training, int64_t built_bytes, const Ranks& ranks) const {
  const DataSection& data = experiment.data;
  LoaderOptions options;
  options.seed = experiment.experiment.seed;
  // Of all ranks together. A sample of batches counts them one by one.
  const int64_t accumulation = experiment.train.gradient_accumulation_steps;
  const int64_t together = experiment.metrics.mode == "sampled" ? 1
                           : training                           ? batches_shared_in_training(accumulation, ranks.count)
                                                                : ranks.count;
  options.batch_size = experiment.train.batch_size * together;
  options.share = {static_cast<uint64_t>(ranks.rank), static_cast<uint64_t>(ranks.count)};
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
  // An augmented sample is another one in each epoch, so keeping it is of no use.
  if (data.cache_size_bytes > 0 && (!training || !source->augments())) options.keep_samples = cache_setting().samples;
  return options;
}

StatisticsRequest OpenedData::statistics_request() const {
  const DataSection& data = experiment.data;
  // Kept statistics hold only as long as the same code reads the same content in the same way.
  const nlohmann::json reads_as = {source->id(), file_id(source_library.path()),
                                   options_without_paths(data_table, data_options, source_library.cost_options())};
  return {.source = *source,
          .train = splits.train,
          .mode = data.normalize,
          .max_samples = data.max_samples_for_normalize,
          .skip_bad_samples = data.on_bad_sample != "fail",
          .content_id = content_id,
          .reads_as = reads_as.dump()};
}

CacheSetting OpenedData::cache_setting() const {
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

int64_t OpenedData::expected_cache_bytes() const {
  const CacheSetting setting = cache_setting();
  if (setting.augments) return setting.limit_bytes;  // the source's own blocks may fill it
  const double samples = static_cast<double>(setting.train_samples + setting.val_samples);
  return static_cast<int64_t>(
      std::min(static_cast<double>(setting.limit_bytes), samples * static_cast<double>(setting.sample_bytes)));
}

ChosenSource choose_source(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Library library = Library::load(find_plugin(experiment.data.source, plugin_dirs));
  if (library.datasource() == nullptr)
    throw Error(Exit::bad_input, "data.source", "'" + experiment.data.source + "' is not a datasource plugin");
  OptionTable table = to_option_table(library.datasource()->options);
  OptionValues options =
      check_options(table, &experiment.data_options, "data.options", "datasource '" + library.id() + "'");
  return {std::move(library), std::move(table), std::move(options)};
}

OpenedData open_data(const Experiment& experiment, ChosenSource chosen, std::shared_ptr<Session> session) {
  std::optional<SynthOptions> synth = check_synth(chosen.library, experiment);
  if (const auto written = synthesise_missing(chosen.library, synth, chosen.table, chosen.options)) {
    spdlog::info("[data] wrote synthetic data to {}", written->string());
  }
  const LayoutCensus census(session->arrays);  // of what the source opens
  auto source = Source::open(chosen.library, chosen.options, session);
  const StoredLayout stored = census.total();
  // By how the files are stored that the source has just opened.
  OrderChoice order = choose_order(experiment.data, stored, samples_of(*source), groups_of(*source));
  std::string id = content_id(*source);
  Splits splits = divide(*source, experiment.data);

  OpenedData data{.experiment = experiment,
                  .source_library = std::move(chosen.library),
                  .data_table = std::move(chosen.table),
                  .data_options = std::move(chosen.options),
                  .synth = std::move(synth),
                  .session = std::move(session),
                  .source = std::move(source),
                  .content_id = std::move(id),
                  .splits = std::move(splits),
                  .stored = stored,
                  .order = std::move(order)};
  // Only now: the policy follows from the order.
  data.session->cache->plugin_policy = data.cache_setting().blocks;
  require_a_window(data);
  return data;
}

void divide_caches(const OpenedData& data, int processes) {
  if (processes == 1) return;
  const DataSection& section = data.experiment.data;
  data.session->cache->blocks.set_limit(static_cast<uint64_t>(section.cache_size_bytes / processes));
  const auto two_chunks = static_cast<int64_t>(2 * data.stored.largest_chunk_bytes);
  const int64_t part = std::max(section.chunk_cache_size_bytes / processes, two_chunks);
  data.session->arrays->set_chunk_cache_limit(std::min(section.chunk_cache_size_bytes, part));
}

LoaderInput loader_input(const OpenedData& data, Normalizer measured,
                         const std::function<void(const std::string& line)>& say) {
  if (!data.experiment.data.normalized_cache) return {data.source, measured, measured};
  const NormalizedCopies copies = use_normalized_copies(
      data.source, measured, [&] { return Source::open(data.source_library, data.data_options, data.session); }, say);
  for (const std::string& line : copies.lines) say(line);
  return {copies.source, measured, measured.without(copies.fields)};
}

}  // namespace headroom
