// config/: TOML experiment files become one typed, immutable Experiment. This is the folder's front door:
// load_experiment() parses, merges `extends` and --set, checks every key, and throws Error(bad_input) with
// file:line:column for the first thing wrong. Plugin options stay TOML here (their tables belong to the plugins);
// check_options() in options.hpp checks them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <toml++/toml.h>
#include <vector>

#include "error.hpp"

namespace headroom {

struct ExperimentSection {
  std::string name;  // required; names the run folder
  uint64_t seed = 0;
  std::string device = "auto";  // auto | cpu | cuda | cuda:N
  int threads = 0;              // 0: auto
  std::string matmul = "auto";  // auto | ieee | fast
  std::string metric = "val/loss";
  std::string better = "auto";  // auto (as the model declares; loss: lower) | lower | higher
};

struct SplitFractions {
  double train = 0.8, val = 0.1, test = 0.1;
  uint64_t seed = 0;
};

struct GroupedSection {
  int64_t runs = 32;
  int64_t run_length = 0;  // samples; 0: auto
};

struct DataSection {
  std::string source;  // required: plugin id or path of a datasource
  int num_workers = 2;
  int prefetch_factor = 2;  // batches per worker
  int64_t prefetch_size_bytes = 256 << 20;
  bool persistent_workers = true;
  bool pin_memory = false;
  std::string normalize = "sampled";  // off | sampled | exact
  int64_t max_samples_for_normalize = 10000;
  bool normalized_cache = false;
  int64_t cache_size_bytes = 0;
  std::string cache_policy = "auto";  // auto | lru | planned
  int64_t chunk_cache_size_bytes = 32 << 20;
  bool memory_map = false;
  std::string shuffle = "auto";  // auto | global | grouped | sequential
  GroupedSection grouped;
  std::optional<SplitFractions> split;
  std::optional<int64_t> max_groups;
  std::string on_bad_sample = "fail";  // fail | skip | skip_not_finite
};

struct OptimizerSection {
  std::string name = "adamw";  // adam | adamw | sgd | rmsprop | lion | lamb, or the id or absolute path of a plugin
  double lr = 1e-3;
  double weight_decay = 0.0;
  double beta1 = 0.9, beta2 = 0.999;  // betas = [beta1, beta2]; beta2 of "lion", where they are not written: 0.99
  double eps = 1e-8;                  // of "lamb", where it is not written: 1e-6
  double alpha = 0.99;                // of "rmsprop"
  double momentum = 0.0;
  bool nesterov = false;
  std::string place = {};  // where the name is written, for sentences; "": nowhere

  bool is_plugin() const;  // the name is not that of a built-in rule
};

// One of [[train.groups]]: parameters with training settings of their own.
struct ParameterGroup {
  std::string match;  // pattern (*, ?) of the names of parameters, or of the groups that the model itself declares
  double lr_scale = 1.0;
  std::optional<double> weight_decay = {};  // replaces train.optimizer.weight_decay
  bool freeze = false;
  std::string place = "";  // where it is written, for errors
};

// [epoch, factor of lr]; epochs never decrease.
using SchedulePoints = std::vector<std::pair<double, double>>;

struct ScheduleSection {
  // constant | cosine | cosine_restarts | linear | one_cycle | plateau | step | table
  std::string name = "constant";
  double warmup_epochs = 0.0;
  int64_t warmup_steps = 0;  // one of the two
  double min_lr = 0.0;
  double step_epochs = 1.0;                                           // of "step"
  double gamma = 0.1;                                                 // of "step"
  double pct_start = 0.3, div_factor = 25.0, final_div_factor = 1e4;  // of "one_cycle"
  double restart_epochs = 10.0, restart_factor = 1.0;                 // of "cosine_restarts"
  SchedulePoints points = {};                                         // of "table"
  double plateau_factor = 0.1;                                        // of "plateau"
  int64_t plateau_patience = 10;                                      // evaluations without improvement
};

struct EarlyStopSection {
  int64_t patience = 20;  // evaluations without improvement
  double min_delta = 0.0;
};

struct TrainSection {
  int64_t epochs = 1;
  int64_t max_steps = 0;  // 0: only epochs bound the run
  int64_t batch_size = 1;
  int64_t gradient_accumulation_steps = 1;
  int64_t micro_batch = 0;            // 0: auto
  std::string precision = "fp32";     // fp32 | fp64 | bf16 | fp16
  double clip_norm = 0.0;             // 0: off
  double clip_value = 0.0;            // before clip_norm; 0: off
  int64_t log_every = 50;             // steps
  bool drop_last = false;             // drops a ragged last window
  std::string on_nonfinite = "stop";  // stop | skip
  bool elastic = false;               // where a process of several is killed, the others go on,
  int64_t elastic_min = 1;            // if they are so many
  int64_t elastic_restarts = 0;       // processes that are started in place of killed ones, in all
  double ema_decay = 0.0;             // train.ema = { decay = 0.999 }; 0: off
  OptimizerSection optimizer;
  toml::table optimizer_options;       // of an optimizer that a plugin offers
  std::vector<ParameterGroup> groups;  // a parameter belongs to the first that matches
  ScheduleSection schedule;
  std::optional<EarlyStopSection> early_stop;
};

struct EvalSection {
  int64_t every_epochs = 1;
};

struct CheckpointSection {
  int64_t every_steps = 0;     // 0: at epoch ends only
  double every_minutes = 0.0;  // 0: off
  int64_t keep = 2;            // newest kept, besides best
};

struct MetricsSection {
  std::string mode = "online";  // online | sampled | full
  int64_t train_batches = 1000;
  int64_t eval_batches = 500;
};

struct MemorySection {
  std::string limit = "auto";  // auto | off | "80%" | bytes in digits
  std::string device_limit = "auto";
  double wait_seconds = 0.0;
  int64_t empty_cache_every = 100;                // batches
  int64_t empty_cache_every_eval = 50;            // batches
  std::string gc_every = "epoch";                 // epoch | pressure | N steps
  std::vector<std::string> recompute = {"auto"};  // empty: "none"; {"auto"}; names of the model's kinds
  int64_t log_every = 100;                        // steps
};

struct RecordSection {
  std::string events_to;  // command; empty: none
};

struct InitSection {
  std::filesystem::path from;                            // safetensors file or checkpoint folder; empty: none
  std::vector<std::pair<std::string, std::string>> map;  // name prefix in the file -> prefix in the model
  std::vector<std::string> ignore;                       // name patterns (*, ?) left alone
};

// One rung of [rescue]: keys that change together.
struct RescueRung {
  toml::table set;                // as a document holds them: train = { batch_size = 8 }
  bool keeps_mathematics = true;  // by its keys alone; see keeps_mathematics() in rescue.hpp
  std::optional<bool> declared;   // what the file claims about that
};

// The rungs that a run which does not fit tries one after the other, starting again with each.
struct RescueSection {
  std::vector<RescueRung> rungs;
  int64_t taken = 0;  // number of rungs that this Experiment's values include
};

// A key that is accepted and recorded but has no effect: "<key>: <why>" is a line for the user.
struct Inert {
  std::string key, why;
};

struct Experiment {
  std::filesystem::path file;
  ExperimentSection experiment;
  std::string model_plugin;
  toml::table model_options;
  DataSection data;
  toml::table data_options;
  std::optional<toml::table> data_synth;
  TrainSection train;
  EvalSection eval;
  CheckpointSection checkpoint;
  MetricsSection metrics;
  MemorySection memory;
  RecordSection record;
  InitSection init;
  std::optional<RescueSection> rescue;
  std::optional<toml::table> sweep;
  std::vector<Inert> inert;  // keys the user set that do nothing yet

  // Move-only: TOML nodes keep their file:line:column, which relative paths depend on, only when moved.
  Experiment() = default;
  Experiment(Experiment&&) = default;
  Experiment& operator=(Experiment&&) = default;
};

struct Override {  // --set key=value
  std::string key, value;
};

// Loads an experiment. `overrides` win over the file, which wins over what it extends. Paths in the result are
// absolute.
Experiment load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides = {});

// The same without a file: `keys` are all that is set, and every required key must be among them. Relative paths are
// relative to the working folder.
Experiment load_keys(const std::vector<Override>& keys);

// Loads one trial of the file's [sweep] (sweep.hpp): the experiment with the chosen values and without the [sweep].
struct SweptChoice;
Experiment load_trial(const std::filesystem::path& file, const std::vector<Override>& overrides,
                      const std::vector<SweptChoice>& choices);

// The resolved experiment as TOML text. Loading the text gives an equal Experiment, wherever the file is put.
// `model_options`, `data_options` and `data_synth` (where the experiment has one) are the checked tables with defaults
// filled in. `decided` has the values that a run chose for keys left to it, as TOML; "" leaves a key out.
using DecidedValues = std::map<std::string, std::string, std::less<>>;
std::string experiment_to_toml(const Experiment& experiment, const toml::table& model_options,
                               const toml::table& data_options, const std::optional<toml::table>& data_synth,
                               const DecidedValues& decided = {});

}  // namespace headroom
