#include "config/experiment.hpp"
#include "config/keys.hpp"

namespace headroom {

namespace {

// `million` and `many` are no limits that anybody meets: they keep arithmetic from overflowing.
constexpr double million = many_to_write, many = 1e12, infinity = std::numeric_limits<double>::infinity();
constexpr Range positive{1, many}, any_count{0, many}, above_zero{0, infinity, true}, not_negative{0, infinity};
constexpr Range fraction{0, 1}, below_one{0, 1, false, true};

using enum KeyType;

// Entry and element say where identities on disk hold the value of a key: they never change.
constexpr Effect cost{Changes::cost};
constexpr Effect subject(std::string_view entry = "") { return {Changes::subject, entry}; }
constexpr Effect mathematics(std::string_view entry, int element = 0) { return {Changes::mathematics, entry, element}; }
constexpr Effect later_mathematics(std::string_view entry) {
  return {.changes = Changes::mathematics, .entry = entry, .left_out_at_default = true};
}
constexpr Effect length(std::string_view entry = "", int element = 0) { return {Changes::length, entry, element}; }

// When a key is idle because of another.
bool reads_inline(const Experiment& e) { return e.data.num_workers == 0; }
bool keeps_no_samples(const Experiment& e) { return e.data.cache_size_bytes == 0; }
bool is_not_normalised(const Experiment& e) { return e.data.normalize == "off"; }
bool is_not_of_a_sample(const Experiment& e) { return e.data.normalize != "sampled"; }
bool is_not_grouped(const Experiment& e) { return e.data.shuffle != "auto" && e.data.shuffle != "grouped"; }
bool is_sgd(const Experiment& e) { return e.train.optimizer.name == "sgd"; }
bool is_unlike_sgd(const Experiment& e) { return !is_sgd(e); }
bool is_rmsprop(const Experiment& e) { return e.train.optimizer.name == "rmsprop"; }
bool is_unlike_rmsprop(const Experiment& e) { return !is_rmsprop(e); }
bool has_no_betas(const Experiment& e) { return is_sgd(e) || is_rmsprop(e); }
bool has_no_momentum(const Experiment& e) { return !is_sgd(e) && !is_rmsprop(e); }
bool divides_by_no_root(const Experiment& e) { return is_sgd(e) || e.train.optimizer.name == "lion"; }
bool is_step(const Experiment& e) { return e.train.schedule.name == "step"; }
bool is_unlike_step(const Experiment& e) { return !is_step(e); }
bool has_no_end(const Experiment& e) { return is_step(e) || e.train.schedule.name == "constant"; }
bool is_not_sampled(const Experiment& e) { return e.metrics.mode != "sampled"; }
bool starts_fresh(const Experiment& e) { return e.init.from.empty(); }

// When it is idle because this version does not act on it yet.
bool limits_the_device(const Experiment& e) { return e.memory.device_limit != "off"; }
bool has_sweep(const Experiment& e) { return e.sweep.has_value(); }

// Path, type, effect, meaning; then, where there is something to say: range, choices, when it is idle, required.
// Trials that differ in unprobed() keys alone share one plan.
std::vector<Key> make_keys() {
  return {
      {"experiment.name", run_name, subject(), "names the run folder", {}, {}, {}, true},
      // TOML's integers are signed, which leaves 63 bits for a seed.
      {"experiment.seed",
       integer,
       mathematics("seed").unprobed(),
       "of initial weights, order and augmentation",
       {0, 0x1p63}},
      {"experiment.device", device, cost, "where the model computes; auto: a GPU where there is one"},
      {"experiment.threads",
       auto_integer,
       cost,
       "threads of one tensor operation; auto: the physical cores allowed",
       {1, 4096}},
      // In the entry of train.early_stop, which it drives; without that section the entry is left out.
      {"experiment.metric", metric, length("early_stop", 2).unprobed(), "drives best, early stopping and sweeps"},
      {"experiment.better",
       choice,
       length("early_stop", 3).unprobed(),
       "which way the metric improves; auto: as the model declares",
       {},
       {"auto", "lower", "higher"}},

      {"model.plugin", plugin, subject("model"), "the model", {}, {}, {}, true},
      {"model.options", options, mathematics("model_options"),
       "the model plugin's own options (`headroom plugins show NAME`)"},

      // The identity holds the data's content, and not who reads it.
      {"data.source", plugin, subject("content"), "the datasource", {}, {}, {}, true},
      {"data.num_workers", integer, cost, "reader threads; 0 reads between steps", {0, 1024}},
      {"data.prefetch_factor",
       integer,
       cost,
       "batches each worker reads ahead",
       {1, 1024},
       {},
       {reads_inline, "data.num_workers = 0 reads nothing ahead"}},
      {"data.prefetch_size",
       bytes,
       cost,
       "what all batches read ahead may hold together; one is always read",
       {},
       {},
       {reads_inline, "data.num_workers = 0 reads nothing ahead"}},
      {"data.persistent_workers",
       boolean,
       cost,
       "readers and their open files live on between epochs",
       {},
       {},
       {reads_inline, "data.num_workers = 0 has no workers"}},
      {"data.pin_memory", boolean, cost, "batches in page-locked memory for a GPU"},
      {"data.normalize",
       choice,
       mathematics("normalize", 0),
       "standardise per channel, from a sample, from all training data, or not",
       {},
       {"off", "sampled", "exact"}},
      {"data.max_samples_for_normalize",
       integer,
       mathematics("normalize", 1),
       "evenly spaced samples the statistics come from",
       positive,
       {},
       {is_not_of_a_sample, "only data.normalize = \"sampled\" uses it"}},
      {"data.normalized_cache",
       boolean,
       cost,
       "standardised copies beside the files, read in their place",
       {},
       {},
       {is_not_normalised, "data.normalize is \"off\""}},
      {"data.cache_size", bytes, cost, "samples kept in memory"},
      {"data.cache_policy",
       choice,
       cost,
       "what goes when it is full: the least recently used, or nothing; auto: by the order",
       {},
       {"auto", "lru", "planned"},
       {keeps_no_samples, "data.cache_size is 0"}},
      {"data.chunk_cache_size", bytes, cost, "decompressed HDF5 chunks kept in memory, of all files together"},
      {"data.memory_map", boolean, cost, "read uncompressed files that are in the page cache without a copy"},
      {"data.shuffle",
       choice,
       mathematics("shuffle"),
       "order of training samples; auto: by the stored layout",
       {},
       {"auto", "global", "grouped", "sequential"}},
      {"data.grouped.runs",
       integer,
       mathematics("grouped", 0),
       "runs of neighbours that the grouped order mixes at a time",
       {1, million},
       {},
       {is_not_grouped, "only data.shuffle = \"grouped\" uses it"}},
      {"data.grouped.run_length",
       auto_integer,
       mathematics("grouped", 1),
       "samples of a run; auto: by the stored layout",
       {1, million},
       {},
       {is_not_grouped, "only data.shuffle = \"grouped\" uses it"}},
      {"data.split.train",
       number,
       mathematics("split", 0),
       "part of the groups (files, recordings) to train on",
       {0, 1, true}},
      {"data.split.val", number, mathematics("split", 1), "part to validate on", fraction},
      {"data.split.test", number, mathematics("split", 2), "part held back", fraction},
      {"data.split.seed", integer, mathematics("split", 3), "which groups go where", {0, 0x1p63}},
      {"data.max_groups", integer, mathematics("max_groups"), "use only so many groups", positive},
      // With train.on_nonfinite: what a run passes over.
      {"data.on_bad_sample",
       choice,
       mathematics("passes_over", 1),
       "end the run, or skip and count; skip_not_finite also skips samples with NaN or infinity",
       {},
       {"fail", "skip", "skip_not_finite"}},
      {"data.options", options, mathematics("data_options"),
       "the datasource's own options; its paths are relative to this file"},
      {"data.synth", options, subject(), "have the source write data where its path does not exist"},

      {"train.epochs", integer, length("length", 0).unprobed(), "passes over the training data", {1, million}},
      {"train.max_steps", integer, length("length", 1).unprobed(),
       "end after so many optimizer steps; 0: no bound beside epochs", any_count},
      // The entry holds the product of both; the batch size counts for itself where the model couples samples.
      {"train.batch_size", integer, mathematics("window"), "samples of one loader batch", {1, million}},
      {"train.gradient_accumulation_steps",
       integer,
       mathematics("window"),
       "batches of one optimizer step",
       {1, million}},
      {"train.micro_batch",
       auto_integer,
       cost,
       "samples of one forward pass; auto: as fits, at most batch_size",
       {1, million}},
      {"train.precision",
       choice,
       mathematics("precision"),
       "of parameters and computation; bf16 and fp16: mixed precision (autocast)",
       {},
       {"fp32", "bf16", "fp16", "fp64"}},
      {"train.clip_norm", number, mathematics("clip_norm"), "largest norm of all gradients; 0: not clipped",
       not_negative},
      {"train.clip_value", number, later_mathematics("clip_value"),
       "largest value of each element of the gradients, both ways, before clip_norm; 0: not clipped", not_negative},
      {"train.log_every", integer, cost.unprobed(), "steps between log lines", positive},
      {"train.drop_last", boolean, mathematics("length", 2),
       "leave out the last window of an epoch when it is not full"},
      {"train.on_nonfinite",
       choice,
       mathematics("passes_over", 0).unprobed(),
       "when loss or gradients are not finite: end the run, or skip the step",
       {},
       {"stop", "skip"}},
      {"train.ema.decay", number, mathematics("ema_decay"), "of the moving average of the weights; 0: none", below_one},
      {"train.optimizer.name",
       choice,
       mathematics("optimizer", 0),
       "the optimizer",
       {},
       {"adam", "adamw", "sgd", "rmsprop", "lion", "lamb"}},
      {"train.optimizer.lr", number, mathematics("optimizer", 1).unprobed(), "learning rate", above_zero},
      {"train.optimizer.weight_decay", number, mathematics("optimizer", 2).unprobed(),
       "decoupled with adamw and lion, part of the scaled step of lamb, else added to the gradient", not_negative},
      // Two elements, 3 and 4.
      {"train.optimizer.betas",
       betas,
       mathematics("optimizer", 3).unprobed(),
       "decay of the two moments (adam, adamw, lion, lamb); lion, unless written: [0.9, 0.99]",
       below_one,
       {},
       {has_no_betas, "sgd and rmsprop do not use it"}},
      {"train.optimizer.eps",
       number,
       mathematics("optimizer", 5).unprobed(),
       "added to the root of the second moment (adam, adamw, rmsprop, lamb); lamb, unless written: 1e-6",
       above_zero,
       {},
       {divides_by_no_root, "sgd and lion do not use it"}},
      {"train.optimizer.alpha",
       number,
       later_mathematics("optimizer_alpha").unprobed(),
       "decay of the second moment of rmsprop",
       below_one,
       {},
       {is_unlike_rmsprop, "only rmsprop uses it"}},
      // Probed: with momentum, there is one more tensor for each parameter.
      {"train.optimizer.momentum",
       number,
       mathematics("optimizer", 6),
       "of sgd and rmsprop",
       below_one,
       {},
       {has_no_momentum, "only sgd and rmsprop use it"}},
      {"train.optimizer.nesterov",
       boolean,
       mathematics("optimizer", 7),
       "of sgd with momentum",
       {},
       {},
       {is_unlike_sgd, "only sgd uses it"}},
      {"train.schedule.name",
       choice,
       mathematics("schedule", 0).unprobed(),
       "of the learning rate after warm-up",
       {},
       {"constant", "cosine", "linear", "step"}},
      {"train.schedule.warmup_epochs", number, mathematics("schedule", 1).unprobed(),
       "linear rise to lr; may be a fraction", not_negative},
      {"train.schedule.warmup_steps", integer, mathematics("schedule", 2).unprobed(), "the same, counted in steps",
       any_count},
      {"train.schedule.min_lr",
       number,
       mathematics("schedule", 3).unprobed(),
       "where cosine and linear end",
       not_negative,
       {},
       {has_no_end, "only the cosine and linear schedules use it"}},
      {"train.schedule.step_epochs",
       number,
       mathematics("schedule", 4).unprobed(),
       "epochs between drops of step",
       above_zero,
       {},
       {is_unlike_step, "only the step schedule uses it"}},
      {"train.schedule.gamma",
       number,
       mathematics("schedule", 5).unprobed(),
       "factor of each drop of step",
       {0, 1, true},
       {},
       {is_unlike_step, "only the step schedule uses it"}},
      {"train.early_stop.patience", integer, length("early_stop", 0).unprobed(),
       "evaluations without improvement before the run ends", positive},
      {"train.early_stop.min_delta", number, length("early_stop", 1).unprobed(),
       "smallest change that counts as improvement", not_negative},

      // Without an entry: evaluations choose which weights are the best, and change none.
      {"eval.every_epochs", integer, length().unprobed(), "epochs between evaluations", {1, million}},

      {"checkpoint.every_steps", integer, cost.unprobed(), "steps between checkpoints; 0: at the ends of epochs only",
       any_count},
      {"checkpoint.every_minutes", number, cost.unprobed(), "minutes between checkpoints; 0: off", not_negative},
      {"checkpoint.keep", integer, cost.unprobed(), "newest checkpoints kept, beside the best", {1, million}},

      {"metrics.mode",
       choice,
       cost,
       "sums as they come, a uniform sample, or everything kept",
       {},
       {"online", "sampled", "full"}},
      {"metrics.train_batches",
       integer,
       cost,
       "training batches of a sample",
       positive,
       {},
       {is_not_sampled, "only metrics.mode = \"sampled\" uses it"}},
      {"metrics.eval_batches",
       integer,
       cost,
       "evaluation batches of a sample",
       positive,
       {},
       {is_not_sampled, "only metrics.mode = \"sampled\" uses it"}},

      {"memory.limit", limit, cost.unprobed(), "of what the trainer holds"},
      {"memory.device_limit",
       limit,
       cost,
       "of what it holds on the GPU",
       {},
       {},
       {limits_the_device, "this version sets no limit on a GPU"}},
      {"memory.wait", duration, cost.unprobed(), "wait so long for memory before giving up"},
      {"memory.empty_cache_every", integer, cost, "training batches between purges of free memory; 0: never",
       any_count},
      {"memory.empty_cache_every_eval", integer, cost, "evaluation batches between purges; 0: never", any_count},
      {"memory.gc_every", gc_points, cost, "when batches, caches and free memory are given back", {1, many}},
      {"memory.recompute", recompute, cost,
       "what the model computes again in backward instead of keeping it; auto: what it must to fit"},
      {"memory.log_every", integer, cost, "steps between memory lines; 0: none", any_count},

      {"record.events_to", command, cost.unprobed(),
       "a command that gets each line of events.jsonl on its standard input"},

      {"init.from", path, subject("init").unprobed(),
       "weights to start from: a safetensors file or a checkpoint folder"},
      {"init.map",
       strings_by_name,
       subject("init").unprobed(),
       "name prefix in the file = prefix in the model",
       {},
       {},
       {starts_fresh, "init.from is not set"}},
      {"init.ignore",
       strings,
       subject("init").unprobed(),
       "name patterns (*, ?) that keep their fresh weights",
       {},
       {},
       {starts_fresh, "init.from is not set"}},

      // Without an entry: rungs that are taken show in the values of the keys that they set.
      {"rescue.rungs", rungs, subject(), "what to change, rung after rung, where the run does not fit (exit 5)"},
      {"rescue.taken", integer, subject(), "rungs that are taken from the start", any_count},

      {"sweep",
       KeyType::sweep,
       subject(),
       "lists by key, and a constraint (`headroom sweep`)",
       {},
       {},
       {has_sweep, "one run tries none of its values"}},
  };
}

}  // namespace

std::span<const Key> known_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

}  // namespace headroom
