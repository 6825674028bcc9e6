#include "config/keys.hpp"

#include <algorithm>

#include "config/literals.hpp"

namespace headroom {

namespace {

constexpr double million = 1e6, many = 1e12, infinity = std::numeric_limits<double>::infinity();
constexpr Range positive{1, many}, any_count{0, many}, above_zero{0, infinity, true}, not_negative{0, infinity};
constexpr Range fraction{0, 1}, below_one{0, 1, false, true};

using enum KeyType;

std::vector<Key> make_keys() {
  return {
      {"experiment.name", run_name, "names the run folder", {}, {}, true},
      {"experiment.seed", integer, "of initial weights, order and augmentation", {0, 0x1p63}},
      {"experiment.device", device, "where the model computes; auto: a GPU where there is one"},
      {"experiment.threads",
       auto_integer,
       "threads of one tensor operation; auto: the physical cores allowed",
       {1, 4096}},
      {"experiment.metric", metric, "drives best, early stopping and sweeps"},
      {"experiment.better",
       choice,
       "which way the metric improves; auto: as the model declares",
       {},
       {"auto", "lower", "higher"}},

      {"model.plugin", plugin, "the model", {}, {}, true},
      {"model.options", options, "the model plugin's own options (`headroom plugins show NAME`)"},

      {"data.source", plugin, "the datasource", {}, {}, true},
      {"data.num_workers", integer, "reader threads; 0 reads between steps", {0, 1024}},
      {"data.prefetch_factor", integer, "batches each worker reads ahead", {1, 1024}},
      {"data.prefetch_size", bytes, "what all batches read ahead may hold together; one is always read"},
      {"data.persistent_workers", boolean, "readers and their open files live on between epochs"},
      {"data.pin_memory", boolean, "batches in page-locked memory for a GPU"},
      {"data.normalize",
       choice,
       "standardise per channel, from a sample, from all training data, or not",
       {},
       {"off", "sampled", "exact"}},
      {"data.max_samples_for_normalize", integer, "evenly spaced samples the statistics come from", positive},
      {"data.normalized_cache", boolean, "standardised copies beside the files, read in their place"},
      {"data.cache_size", bytes, "samples kept in memory"},
      {"data.cache_policy",
       choice,
       "what goes when it is full: the least recently used, or nothing; auto: by the order",
       {},
       {"auto", "lru", "planned"}},
      {"data.chunk_cache_size", bytes, "decompressed HDF5 chunks kept in memory, of all files together"},
      {"data.memory_map", boolean, "read uncompressed files that are in the page cache without a copy"},
      {"data.shuffle",
       choice,
       "order of training samples; auto: by the stored layout",
       {},
       {"auto", "global", "grouped", "sequential"}},
      {"data.grouped.runs", integer, "runs of neighbours that the grouped order mixes at a time", {1, million}},
      {"data.grouped.run_length", auto_integer, "samples of a run; auto: by the stored layout", {1, million}},
      {"data.split.train", number, "part of the groups (files, recordings) to train on", {0, 1, true}},
      {"data.split.val", number, "part to validate on", fraction},
      {"data.split.test", number, "part held back", fraction},
      {"data.split.seed", integer, "which groups go where", {0, 0x1p63}},
      {"data.max_groups", integer, "use only so many groups", positive},
      {"data.on_bad_sample", choice, "end the run, or skip and count", {}, {"fail", "skip"}},
      {"data.options", options, "the datasource's own options; its paths are relative to this file"},
      {"data.synth", options, "have the source write data where its path does not exist"},

      {"train.epochs", integer, "passes over the training data", {1, million}},
      {"train.max_steps", integer, "end after so many optimizer steps; 0: no bound beside epochs", any_count},
      {"train.batch_size", integer, "samples of one loader batch", {1, million}},
      {"train.gradient_accumulation_steps", integer, "batches of one optimizer step", {1, million}},
      {"train.micro_batch",
       auto_integer,
       "samples of one forward pass; auto: as fits, at most batch_size",
       {1, million}},
      {"train.precision",
       choice,
       "of parameters and computation; bf16 and fp16: mixed precision (autocast)",
       {},
       {"fp32", "bf16", "fp16", "fp64"}},
      {"train.clip_norm", number, "largest norm of all gradients; 0: not clipped", not_negative},
      {"train.log_every", integer, "steps between log lines", positive},
      {"train.drop_last", boolean, "leave out the last window of an epoch when it is not full"},
      {"train.on_nonfinite",
       choice,
       "when loss or gradients are not finite: end the run, or skip the step",
       {},
       {"stop", "skip"}},
      {"train.ema.decay", number, "of the moving average of the weights; 0: none", below_one},
      {"train.optimizer.name", choice, "the optimizer", {}, {"adam", "adamw", "sgd"}},
      {"train.optimizer.lr", number, "learning rate", above_zero},
      {"train.optimizer.weight_decay", number, "decoupled with adamw, else added to the gradient", not_negative},
      {"train.optimizer.betas", betas, "decay of the two moments (adam, adamw)", below_one},
      {"train.optimizer.eps", number, "added to the root of the second moment (adam, adamw)", above_zero},
      {"train.optimizer.momentum", number, "of sgd", below_one},
      {"train.optimizer.nesterov", boolean, "of sgd with momentum"},
      {"train.schedule.name",
       choice,
       "of the learning rate after warm-up",
       {},
       {"constant", "cosine", "linear", "step"}},
      {"train.schedule.warmup_epochs", number, "linear rise to lr; may be a fraction", not_negative},
      {"train.schedule.warmup_steps", integer, "the same, counted in steps", any_count},
      {"train.schedule.min_lr", number, "where cosine and linear end", not_negative},
      {"train.schedule.step_epochs", number, "epochs between drops of step", above_zero},
      {"train.schedule.gamma", number, "factor of each drop of step", {0, 1, true}},
      {"train.early_stop.patience", integer, "evaluations without improvement before the run ends", positive},
      {"train.early_stop.min_delta", number, "smallest change that counts as improvement", not_negative},

      {"eval.every_epochs", integer, "epochs between evaluations", {1, million}},

      {"checkpoint.every_steps", integer, "steps between checkpoints; 0: at the ends of epochs only", any_count},
      {"checkpoint.every_minutes", number, "minutes between checkpoints; 0: off", not_negative},
      {"checkpoint.keep", integer, "newest checkpoints kept, beside the best", {1, million}},

      {"metrics.mode",
       choice,
       "sums as they come, a uniform sample, or everything kept",
       {},
       {"online", "sampled", "full"}},
      {"metrics.train_batches", integer, "training batches of a sample", positive},
      {"metrics.eval_batches", integer, "evaluation batches of a sample", positive},

      {"memory.limit", limit, "of what the trainer holds"},
      {"memory.device_limit", limit, "of what it holds on the GPU"},
      {"memory.wait", duration, "wait so long for memory before giving up"},
      {"memory.empty_cache_every", integer, "training batches between purges of free memory; 0: never", any_count},
      {"memory.empty_cache_every_eval", integer, "evaluation batches between purges; 0: never", any_count},
      {"memory.gc_every", gc_points, "when batches, caches and free memory are given back", {1, many}},
      {"memory.recompute", recompute,
       "what the model computes again in backward instead of keeping it; auto: what it must to fit"},
      {"memory.log_every", integer, "steps between memory lines; 0: none", any_count},

      {"record.events_to", command, "a command that gets each line of events.jsonl on its standard input"},

      {"init.from", path, "weights to start from: a safetensors file or a checkpoint folder"},
      {"init.map", strings_by_name, "name prefix in the file = prefix in the model"},
      {"init.ignore", strings, "name patterns (*, ?) that keep their fresh weights"},

      {"rescue.rungs", rungs, "what to change, rung after rung, where the run does not fit (exit 5)"},
      {"rescue.taken", integer, "rungs that are taken from the start", any_count},

      {"sweep", KeyType::sweep, "lists by key, and a constraint (`headroom sweep`)"},
  };
}

const std::vector<Key>& table() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

}  // namespace

std::string_view Key::section() const {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
}

std::string_view Key::name() const { return std::string_view(path).substr(path.rfind('.') + 1); }

std::span<const Key> known_keys() { return table(); }

const Key* find_key(std::string_view path) {
  const auto found = std::ranges::find(table(), path, &Key::path);
  return found == table().end() ? nullptr : &*found;
}

bool is_section(std::string_view path) {
  const std::string prefix = std::string(path) + ".";
  return std::ranges::any_of(table(), [&](const Key& key) { return key.path.starts_with(prefix); });
}

std::vector<std::string> names_under(std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  std::vector<std::string> names;
  for (const Key& key : table()) {
    if (!key.path.starts_with(prefix)) continue;
    const std::string name = key.path.substr(prefix.size(), key.path.find('.', prefix.size()) - prefix.size());
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string allowed(const Key& key) {
  Range range = key.range;
  if (range.high >= million) range.high = infinity;  // bounds that only keep arithmetic from overflowing
  switch (key.type) {
    case boolean:
      return "true or false";
    case integer:
      return range_text("an integer", range);
    case number:
      return range_text("a number", range);
    case choice:
      return any_of(key.choices, true);
    case run_name:
      return "a name of at most 100 characters without \"/\" that does not begin with \".\" or \"-\"";
    case plugin:
      return "the id or the path of a plugin";
    case metric:
      return "a split and a metric such as \"val/loss\"";
    case device:
      return "\"auto\", \"cpu\", \"cuda\" or \"cuda:N\"";
    case auto_integer:
      return "\"auto\" or " + range_text("an integer", range);
    case gc_points:
      return "\"epoch\", \"pressure\" or a number of steps of at least 1";
    case limit:
      return "\"auto\", \"off\", a share such as \"80%\" or a size such as \"8 GiB\"";
    case bytes:
      return "a size such as \"64 MiB\" or a number of bytes";
    case duration:
      return "a duration such as \"10 min\" or a number of seconds";
    case path:
      return "a path";
    case command:
      return "a command for the shell";
    case betas:
      return "a list of two numbers from 0 to below 1";
    case strings:
      return "a list of strings";
    case recompute:
      return "\"none\", \"auto\" or a list of names that the model offers (`headroom plugins show NAME`)";
    case strings_by_name:
      return "a table of strings, as { \"encoder.\" = \"model.encoder.\" }";
    case options:
      return "a table";
    case rungs:
      return "a list of tables of keys, as [{ \"train.batch_size\" = 8 }]";
    case KeyType::sweep:
      return "a table of lists";
  }
  return "";
}

}  // namespace headroom
