// What a run knows before it has a model: plugins loaded, options checked, data opened and divided.
#pragma once

#include <c10/core/Device.h>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "data/opened_data.hpp"
#include "memory/device_limit.hpp"
#include "plugins/library.hpp"
#include "plugins/optimizer_plugin.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

class RankGroup;

// Made by prepare_data() and never changed after it. All members [any].
struct RunData : OpenedData {
  at::Device device;                        // to compute on
  std::optional<DeviceLimit> device_limit;  // in force there; nullopt: the CPU
  int threads;                              // to compute with
  Library model_library;
  OptionTable model_table;                           // what the plugin offers
  OptionValues model_options;                        // in the order of the table, defaults filled in
  std::map<std::string, std::string> model_files;    // digests of what the model is made of beside its plugin
  std::shared_ptr<const OptimizerPlugin> optimizer;  // nullptr: it is one of ours
  std::shared_ptr<RankGroup> group = nullptr;        // the processes of the run; NULL: it is alone

  std::string resolved_toml() const;  // the experiment with every default filled in and every path absolute

  // OpenedData's, of this rank, in memory that is page-locked where data.pin_memory says so. `built_bytes`:
  // Setup::built_bytes, a probe's where there is no model.
  LoaderOptions loader_options(bool training, int64_t built_bytes) const;

  // Whether the batches of an evaluation may be larger than those of training: train.micro_batch does not fix what goes
  // through the model at once, and metrics.mode does not count batches.
  bool evaluates_in_larger_batches() const;

  Ranks ranks() const;      // of the group
  bool is_elastic() const;  // several processes, of which those that are left go on where one is killed
};

// Writes [data.synth] data first where `path` does not exist. `experiment` must outlive the result. Sets LibTorch's
// threads. `trains` false: no step is taken, and the optimizer's plugin may be missing. Error(bad_input), Error(plugin)
// or Error(data). `group`: the processes that share the run. [control]
RunData prepare_data(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                     bool trains = true, std::shared_ptr<RankGroup> group = nullptr);

}  // namespace headroom
