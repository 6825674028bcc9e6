// What an experiment's [data] section comes to: its source opened, its samples divided and put in order. All that the
// loaders of a run need, without a model and without LibTorch.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/array_session.hpp"
#include "config/experiment.hpp"
#include "data/data_report.hpp"
#include "data/loader.hpp"
#include "data/normalizer.hpp"
#include "data/order.hpp"
#include "data/synth.hpp"
#include "plugins/library.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

// The datasource that an experiment names, with its options checked. Nothing is opened yet.
struct ChosenSource {
  Library library;
  OptionTable table;     // what the plugin offers
  OptionValues options;  // in its order, defaults filled in
};

// Error(plugin) or Error(bad_input). [control]
ChosenSource choose_source(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

// Made by open_data() and never changed after it. All members [any].
struct OpenedData {
  const Experiment& experiment;
  Library source_library;
  OptionTable data_table;                // what the plugin offers
  OptionValues data_options;             // in the order of the table, defaults filled in
  std::optional<SynthOptions> synth;     // [data.synth]
  std::shared_ptr<Session> session;      // before what is made with it
  std::shared_ptr<const Source> source;  // as data.options say; what loaders read may be a copy, see LoaderInput
  std::string content_id;                // hash of what the source's files hold, wherever they lie
  Splits splits;
  StoredLayout stored;  // how the files that the source opened are stored
  OrderChoice order;    // of training

  int64_t window_samples() const;      // batch_size x gradient_accumulation_steps
  uint64_t samples_per_epoch() const;  // of the training split, less what drop_last drops
  int64_t windows_per_epoch() const;
  int64_t epochs() const;  // at most: train.epochs, or fewer where train.max_steps ends it before

  // Of the loader of training, or of the one of evaluation that stands beside it, in one process of `ranks`. The only
  // place that knows how the two differ: runs, probes, plans and the loader of Python ask here. `built_bytes`: what the
  // process held before its first batch.
  LoaderOptions loader_options(bool training, int64_t built_bytes, const Ranks& ranks = {}) const;

  StatisticsRequest statistics_request() const;  // of the normalisation, as the experiment asks for it
  CacheSetting cache_setting() const;            // what the sample cache is used for
  int64_t expected_cache_bytes() const;          // what it will hold, where memory allows
};

// Writes [data.synth] data first where `path` does not exist. `experiment` must outlive the result. `session`:
// make_session(). Error(bad_input), Error(plugin) or Error(data). [control]
OpenedData open_data(const Experiment& experiment, ChosenSource chosen, std::shared_ptr<Session> session);

// Of `processes` of a run on this machine each meets a part of the data (batch_reader.cpp): data.cache_size and
// data.chunk_cache_size are of all together. Chunks that one batch needs at a time find room in any case. [control]
void divide_caches(const OpenedData& data, int processes);

// What the loaders of a run read.
struct LoaderInput {
  std::shared_ptr<const Source> source;
  Normalizer measured;  // the statistics of the run, as its checkpoints keep them
  Normalizer applied;   // by the loader: of `measured` what `source` does not deliver standardised already
};

// With data.normalized_cache, copies in which fields are standardised: found or made here, which may take a while.
// Otherwise the source of `data`. `say`: lines for the log. [control] No reader of the source is open.
LoaderInput loader_input(const OpenedData& data, Normalizer measured,
                         const std::function<void(const std::string& line)>& say);

// The options as TOML, less those that say where files lie, and less `costs`: for ids that are the same wherever a file
// is put, whatever reading it costs.
std::string options_without_paths(const OptionTable& table, const OptionValues& values,
                                  const std::vector<std::string>& costs = {});

}  // namespace headroom
