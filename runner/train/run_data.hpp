// What a run knows before it has a model: plugins loaded, options checked, data opened and divided.
#pragma once

#include <c10/core/Device.h>
#include <filesystem>
#include <functional>
#include <map>
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
#include "memory/device_limit.hpp"
#include "plugins/library.hpp"
#include "plugins/optimizer_plugin.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

class RankGroup;

// Made by prepare_data() and never changed after it. All members [any].
struct RunData {
  const Experiment& experiment;
  at::Device device;                        // to compute on
  std::optional<DeviceLimit> device_limit;  // in force there; nullopt: the CPU
  int threads;                              // to compute with
  Library model_library, source_library;
  OptionTable model_table, data_table;               // what the plugins offer
  OptionValues model_options, data_options;          // in the order of the tables, defaults filled in
  std::map<std::string, std::string> model_files;    // digests of what the model is made of beside its plugin
  std::optional<SynthOptions> synth;                 // [data.synth]
  std::shared_ptr<Session> session;                  // before what is made with it
  std::shared_ptr<const OptimizerPlugin> optimizer;  // nullptr: it is one of ours
  std::shared_ptr<const Source> source;  // as data.options say; what loaders read may be a copy, see LoaderInput
  std::string content_id;                // hash of what the source's files hold, wherever they lie
  Splits splits;
  StoredLayout stored;                         // how the files that the source opened are stored
  OrderChoice order;                           // of training
  std::shared_ptr<RankGroup> group = nullptr;  // the processes of the run; NULL: it is alone

  int64_t window_samples() const;      // batch_size x gradient_accumulation_steps
  uint64_t samples_per_epoch() const;  // of the training split, less what drop_last drops
  int64_t windows_per_epoch() const;
  int64_t epochs() const;             // at most: train.epochs, or fewer where train.max_steps ends it before
  std::string resolved_toml() const;  // the experiment with every default filled in and every path absolute

  // Of the loader of training, or of the one of evaluation that stands beside it. The only place that knows how the
  // two differ: runs, probes and plans ask here. `built_bytes`: Setup::built_bytes, a probe's where there is no model.
  LoaderOptions loader_options(bool training, int64_t built_bytes) const;

  // Whether the batches of an evaluation may be larger than those of training: train.micro_batch does not fix what goes
  // through the model at once, and metrics.mode does not count batches.
  bool evaluates_in_larger_batches() const;

  Ranks ranks() const;      // of the group
  bool is_elastic() const;  // several processes, of which those that are left go on where one is killed

  StatisticsRequest statistics_request() const;  // of the normalisation, as the experiment asks for it
  CacheSetting cache_setting() const;            // what the sample cache is used for
  int64_t expected_cache_bytes() const;          // what it will hold, where memory allows
};

// Writes [data.synth] data first where `path` does not exist. `experiment` must outlive the result. Sets LibTorch's
// threads. `trains` false: no step is taken, and the optimizer's plugin may be missing. Error(bad_input), Error(plugin)
// or Error(data). `group`: the processes that share the run. [control]
RunData prepare_data(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                     bool trains = true, std::shared_ptr<RankGroup> group = nullptr);

// What the loaders of a run read.
struct LoaderInput {
  std::shared_ptr<const Source> source;
  Normalizer measured;  // the statistics of the run, as its checkpoints keep them
  Normalizer applied;   // by the loader: of `measured` what `source` does not deliver standardised already
};

// With data.normalized_cache, copies in which fields are standardised: found or made here, which may take a while.
// Otherwise the source of `data`. `say`: lines for the log. [control] No reader of the source is open.
LoaderInput loader_input(const RunData& data, Normalizer measured,
                         const std::function<void(const std::string& line)>& say);

// The options as TOML, less those that say where files lie: for ids that are the same wherever a file is put.
std::string options_without_paths(const OptionTable& table, const OptionValues& values);

}  // namespace headroom
