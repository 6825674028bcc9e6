#include "config/experiment.hpp"

#include <algorithm>
#include <gtest/gtest.h>

#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/values.hpp"
#include "files.hpp"

namespace headroom {

namespace {

// Every key set to something other than its default.
const std::string everything = R"(
[experiment]
name = "all keys"
seed = 42
device = "cuda:1"
threads = 3
matmul = "ieee"
metric = "val/mae"
better = "higher"

[model]
plugin = "m"

[model.options]
width = 8
stages = [{ a = 1, b = [1.5, 2.0] }, { a = 2 }]
"odd key" = "tab\there"

[data]
source = "s"
num_workers = 5
prefetch_factor = 7
prefetch_size = "3 MiB"
persistent_workers = false
pin_memory = true
normalize = "sampled"
max_samples_for_normalize = 123
normalized_cache = true
cache_size = "50 GiB"
cache_policy = "planned"
chunk_cache_size = 1000
memory_map = true
shuffle = "grouped"
grouped = { runs = 8, run_length = 100 }
split = { train = 0.7, val = 0.2, test = 0.1, seed = 9 }
max_groups = 4
on_bad_sample = "skip"

[data.options]
path = "/data"

[data.synth]
sessions = 3

[train]
epochs = 11
max_steps = 1000
batch_size = 16
gradient_accumulation_steps = 4
micro_batch = 8
precision = "fp64"
clip_norm = 0.5
clip_value = 0.25
log_every = 7
drop_last = true
on_nonfinite = "skip"
optimizer = { name = "adam", lr = 3e-4, weight_decay = 0.02, betas = [0.8, 0.99], eps = 1e-7, alpha = 0.95, momentum = 0.5, nesterov = true }
optimizer_options = { rate = 2 }
schedule = { name = "cosine", warmup_epochs = 2.5, min_lr = 1e-6, warmup_steps = 0, step_epochs = 3, gamma = 0.3, pct_start = 0.2, div_factor = 20, final_div_factor = 100, restart_epochs = 4, restart_factor = 2, points = [[0, 0.5], [5, 1.0]], plateau_factor = 0.5, plateau_patience = 3 }
groups = [{ match = "backbone.*", freeze = true }, { match = "*.bias", lr_scale = 0.5, weight_decay = 0.0 }, { match = "*" }]
early_stop = { patience = 5, min_delta = 0.001 }
ema = { decay = 0.999 }

[eval]
every_epochs = 2

[checkpoint]
every_steps = 100
every_minutes = 2.5
keep = 4

[metrics]
mode = "sampled"
train_batches = 10
eval_batches = 20

[memory]
limit = "80%"
device_limit = 1000000
wait = "10 min"
empty_cache_every = 3
empty_cache_every_eval = 4
gc_every = 25
recompute = ["attention", "mlp"]
log_every = 9

[record]
events_to = "cat > /dev/null"

[init]
from = "/weights"
map = { "old." = "new.", "" = "x" }
ignore = ["head.*"]

[rescue]
rungs = [{ "data.num_workers" = 5 }, { "model.options.width" = 4, train.batch_size = 8 }]
taken = 1

[sweep]
"train.batch_size" = [8, 16]
constraint = "train.batch_size == 8"
)";

std::map<std::string, std::string> values_of(const Experiment& experiment) {
  std::map<std::string, std::string> values;
  each_field(experiment, [&](std::string_view path, const auto& field) {
    values[std::string(path)] = value_literal(*find_key(path), field);
  });
  return values;
}

std::vector<std::string> inert_keys_of(const Experiment& experiment) {
  std::vector<std::string> keys;
  for (const Inert& inert : experiment.inert) keys.push_back(inert.key);
  return keys;
}

std::string written(const Experiment& experiment) {
  return experiment_to_toml(experiment, experiment.model_options, experiment.data_options, experiment.data_synth);
}

TEST(Load, EveryKeyReachesItsMember) {
  const Experiment e = loaded(everything);
  EXPECT_EQ(e.experiment.name, "all keys");
  EXPECT_EQ(e.experiment.seed, 42u);
  EXPECT_EQ(e.experiment.device, "cuda:1");
  EXPECT_EQ(e.experiment.threads, 3);
  EXPECT_EQ(e.experiment.matmul, "ieee");
  EXPECT_EQ(e.experiment.metric, "val/mae");
  EXPECT_EQ(e.experiment.better, "higher");
  EXPECT_EQ(e.model_plugin, "m");
  EXPECT_EQ(*e.model_options["stages"][0]["b"][0].value<double>(), 1.5);
  EXPECT_EQ(e.data.source, "s");
  EXPECT_EQ(e.data.num_workers, 5);
  EXPECT_EQ(e.data.prefetch_factor, 7);
  EXPECT_EQ(e.data.prefetch_size_bytes, 3 << 20);
  EXPECT_FALSE(e.data.persistent_workers);
  EXPECT_TRUE(e.data.pin_memory);
  EXPECT_EQ(e.data.normalize, "sampled");
  EXPECT_EQ(e.data.max_samples_for_normalize, 123);
  EXPECT_TRUE(e.data.normalized_cache);
  EXPECT_EQ(e.data.cache_size_bytes, int64_t{50} << 30);
  EXPECT_EQ(e.data.cache_policy, "planned");
  EXPECT_EQ(e.data.chunk_cache_size_bytes, 1000);
  EXPECT_EQ(e.data.shuffle, "grouped");
  EXPECT_EQ(e.data.split->train, 0.7);
  EXPECT_EQ(e.data.split->val, 0.2);
  EXPECT_EQ(e.data.split->test, 0.1);
  EXPECT_EQ(e.data.split->seed, 9u);
  EXPECT_EQ(e.data.max_groups, 4);
  EXPECT_EQ(e.data.on_bad_sample, "skip");
  EXPECT_EQ(*e.data_options["path"].value<std::string>(), "/data");
  EXPECT_EQ(*(*e.data_synth)["sessions"].value<int64_t>(), 3);
  EXPECT_EQ(e.train.epochs, 11);
  EXPECT_EQ(e.train.max_steps, 1000);
  EXPECT_EQ(e.train.batch_size, 16);
  EXPECT_EQ(e.train.gradient_accumulation_steps, 4);
  EXPECT_EQ(e.train.micro_batch, 8);
  EXPECT_EQ(e.train.precision, "fp64");
  EXPECT_EQ(e.train.clip_norm, 0.5);
  EXPECT_EQ(e.train.clip_value, 0.25);
  EXPECT_EQ(e.train.log_every, 7);
  EXPECT_TRUE(e.train.drop_last);
  EXPECT_EQ(e.train.on_nonfinite, "skip");
  EXPECT_EQ(e.train.ema_decay, 0.999);
  EXPECT_EQ(e.train.optimizer.name, "adam");
  EXPECT_EQ(e.train.optimizer.lr, 3e-4);
  EXPECT_EQ(e.train.optimizer.weight_decay, 0.02);
  EXPECT_EQ(e.train.optimizer.beta1, 0.8);
  EXPECT_EQ(e.train.optimizer.beta2, 0.99);
  EXPECT_EQ(e.train.optimizer.eps, 1e-7);
  EXPECT_EQ(e.train.optimizer.alpha, 0.95);
  EXPECT_EQ(e.train.optimizer.momentum, 0.5);
  EXPECT_TRUE(e.train.optimizer.nesterov);
  EXPECT_EQ(*e.train.optimizer_options["rate"].value<int64_t>(), 2);
  ASSERT_EQ(e.train.groups.size(), 3u);
  EXPECT_EQ(e.train.groups[0].match, "backbone.*");
  EXPECT_TRUE(e.train.groups[0].freeze);
  EXPECT_EQ(e.train.groups[0].lr_scale, 1.0);
  EXPECT_FALSE(e.train.groups[0].weight_decay);
  EXPECT_EQ(e.train.groups[1].lr_scale, 0.5);
  EXPECT_EQ(e.train.groups[1].weight_decay, 0.0);
  EXPECT_FALSE(e.train.groups[1].freeze);
  EXPECT_EQ(e.train.schedule.name, "cosine");
  EXPECT_EQ(e.train.schedule.warmup_epochs, 2.5);
  EXPECT_EQ(e.train.schedule.min_lr, 1e-6);
  EXPECT_EQ(e.train.schedule.step_epochs, 3);
  EXPECT_EQ(e.train.schedule.gamma, 0.3);
  EXPECT_EQ(e.train.schedule.pct_start, 0.2);
  EXPECT_EQ(e.train.schedule.div_factor, 20.0);
  EXPECT_EQ(e.train.schedule.final_div_factor, 100.0);
  EXPECT_EQ(e.train.schedule.restart_epochs, 4.0);
  EXPECT_EQ(e.train.schedule.restart_factor, 2.0);
  EXPECT_EQ(e.train.schedule.points, (SchedulePoints{{0.0, 0.5}, {5.0, 1.0}}));
  EXPECT_EQ(e.train.schedule.plateau_factor, 0.5);
  EXPECT_EQ(e.train.schedule.plateau_patience, 3);
  EXPECT_EQ(e.train.early_stop->patience, 5);
  EXPECT_EQ(e.train.early_stop->min_delta, 0.001);
  EXPECT_EQ(e.eval.every_epochs, 2);
  EXPECT_EQ(e.checkpoint.every_steps, 100);
  EXPECT_EQ(e.checkpoint.every_minutes, 2.5);
  EXPECT_EQ(e.checkpoint.keep, 4);
  EXPECT_EQ(e.metrics.mode, "sampled");
  EXPECT_EQ(e.metrics.train_batches, 10);
  EXPECT_EQ(e.metrics.eval_batches, 20);
  EXPECT_EQ(e.memory.limit, "80%");
  EXPECT_EQ(e.memory.device_limit, "1000000");
  EXPECT_EQ(e.memory.wait_seconds, 600);
  EXPECT_EQ(e.memory.empty_cache_every, 3);
  EXPECT_EQ(e.memory.empty_cache_every_eval, 4);
  EXPECT_EQ(e.memory.gc_every, "25");
  EXPECT_EQ(e.memory.recompute, (std::vector<std::string>{"attention", "mlp"}));
  EXPECT_EQ(e.memory.log_every, 9);
  EXPECT_EQ(e.record.events_to, "cat > /dev/null");
  EXPECT_EQ(e.init.from, "/weights");
  const StringsByName map = {{"", "x"}, {"old.", "new."}};
  EXPECT_EQ(e.init.map, map);
  EXPECT_EQ(e.init.ignore, std::vector<std::string>{"head.*"});
  EXPECT_EQ(e.rescue->rungs.size(), 2u);
  EXPECT_EQ(e.rescue->taken, 1);
  EXPECT_EQ((*e.sweep)["train.batch_size"].as_array()->size(), 2u);
}

TEST(Load, EveryKeyDiffersFromItsDefaultInTheTestAbove) {
  const auto set = values_of(loaded(everything)), defaults = values_of(Experiment{});
  for (const Key& key : known_keys()) {
    const auto before = defaults.find(key.path);
    if (before == defaults.end()) continue;
    const bool kept =
        key.path == "data.normalize" || key.path == "train.schedule.warmup_steps";  // others need them as they are
    EXPECT_EQ(before->second == set.at(key.path), kept) << key.path;
  }
}

TEST(Load, DefaultsAreTheHeaders) {
  const Experiment e = loaded(required_keys);
  auto values = values_of(e), defaults = values_of(Experiment{});
  for (const char* key : {"experiment.name", "model.plugin", "data.source"}) values[key] = defaults[key] = "";
  EXPECT_EQ(values, defaults);
  EXPECT_TRUE(e.inert.empty());
}

TEST(Load, WordsAndNumbersOfOneKey) {
  const Experiment words = loaded(
      required_keys + "train.micro_batch = \"auto\"\nexperiment.threads = \"auto\"\nmemory.gc_every = \"pressure\"\n");
  EXPECT_EQ(words.train.micro_batch, 0);
  EXPECT_EQ(words.experiment.threads, 0);
  EXPECT_EQ(words.memory.gc_every, "pressure");
  const Experiment numbers =
      loaded(required_keys + "memory.wait = 90\ntrain.clip_norm = 1\ndata.cache_size = \"1.5 GB\"\n");
  EXPECT_EQ(numbers.memory.wait_seconds, 90);
  EXPECT_EQ(numbers.train.clip_norm, 1.0);
  EXPECT_EQ(numbers.data.cache_size_bytes, 1'500'000'000);
}

TEST(Load, AnOptimizerWithDefaultsOfItsOwnHasThemUnlessTheyAreWritten) {
  const auto optimizer = [](const std::string& text) {
    return loaded(required_keys + "train.optimizer = { " + text + " }\n").train.optimizer;
  };
  EXPECT_EQ(optimizer("name = \"lion\"").beta2, 0.99);
  EXPECT_EQ(optimizer("name = \"lion\", betas = [0.9, 0.999]").beta2, 0.999);
  EXPECT_EQ(optimizer("name = \"lamb\"").eps, 1e-6);
  EXPECT_EQ(optimizer("name = \"lamb\", eps = 1e-8").eps, 1e-8);
  EXPECT_EQ(optimizer("name = \"lamb\"").beta2, 0.999);
}

TEST(Load, AnOptimizerMayBeAPlugins) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "x.toml", required_keys + "[train]\noptimizer = { name = \"lib/muon.so\", lr = 0.02, betas = [0.9, 0.99] }\n"
                                "[train.optimizer_options]\nns_steps = 6\n");
  const Experiment e = load_experiment(file);
  EXPECT_TRUE(e.train.optimizer.is_plugin());
  EXPECT_EQ(e.train.optimizer.name, (folder.path() / "lib/muon.so").string());
  EXPECT_EQ(replaced(e.train.optimizer.place, folder.path().string() + "/", ""), "x.toml:5:22");
  EXPECT_EQ(*e.train.optimizer_options["ns_steps"].value<int64_t>(), 6);
  EXPECT_EQ(inert_keys_of(e), std::vector<std::string>{"train.optimizer.betas"});
  EXPECT_EQ(loaded(required_keys + "train.optimizer.name = \"muon\"\n").train.optimizer.name, "muon");
  EXPECT_FALSE(loaded(required_keys).train.optimizer.is_plugin());
}

TEST(Load, AGroupKnowsWhereItIsWritten) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "x.toml",
      required_keys + "[[train.groups]]\nmatch = \"a.*\"\n[[train.groups]]\nmatch = \"b.*\"\nfreeze = true\n");
  const Experiment e = load_experiment(file);
  ASSERT_EQ(e.train.groups.size(), 2u);
  EXPECT_EQ(replaced(e.train.groups[1].place, folder.path().string() + "/", ""), "x.toml:6:1");
  const Experiment set = load_experiment(file, {{"train.groups", "[{ match = \"c.*\", lr_scale = 2 }]"}});
  ASSERT_EQ(set.train.groups.size(), 1u);
  EXPECT_EQ(set.train.groups[0].lr_scale, 2.0);
}

TEST(Load, PartsThatASplitLeavesOutAreNothing) {
  const Experiment e = loaded(required_keys + "data.split = { train = 0.9, val = 0.1 }\n");
  EXPECT_EQ(e.data.split->test, 0.0);
}

TEST(Load, ThirdsAddUpToOne) {
  EXPECT_NO_THROW(loaded(required_keys + "data.split = { train = 0.7, val = 0.2, test = 0.1 }\n"));
}

TEST(Load, DottedSweepsAreTheSame) {
  const Experiment e = loaded(required_keys + "[sweep]\ntrain.batch_size = [8, 16]\nmodel.options.anything = [1, 2]\n");
  EXPECT_TRUE(e.sweep->contains("train"));
  EXPECT_EQ(inert_keys_of(e), std::vector<std::string>{"sweep"});
}

TEST(Inert, OnlyWhatIsSetAndDoesNothingIsNamed) {
  const Experiment e =
      loaded(required_keys +
             "data.pin_memory = false\nmemory.device_limit = \"1 GiB\"\ntrain.epochs = 3\nmemory.limit = \"off\"\n");
  EXPECT_EQ(inert_keys_of(e), std::vector<std::string>{"memory.device_limit"});
  EXPECT_EQ(e.inert[0].why, "this version sets no limit on a GPU");
}

TEST(Inert, WhatAnotherKeyOverrulesIsNamed) {
  const Experiment e =
      loaded(required_keys +
             "data.cache_policy = \"lru\"\ndata.normalize = \"off\"\ndata.normalized_cache = true\n"
             "data.max_samples_for_normalize = 5\ndata.shuffle = \"global\"\n"
             "data.grouped.runs = 8\ninit.ignore = [\"a\"]\n"
             "train.optimizer = { name = \"sgd\", betas = [0.9, 0.99] }\ntrain.schedule = { gamma = 0.5 }\n");
  const std::vector<std::string> expected = {
      "data.max_samples_for_normalize", "data.normalized_cache", "data.cache_policy", "data.grouped.runs",
      "train.optimizer.betas",          "train.schedule.gamma",  "init.ignore"};
  EXPECT_EQ(inert_keys_of(e), expected);
}

TEST(Inert, EveryRowNamesAKey) {
  Experiment e = loaded(everything);
  e.init.from.clear();
  size_t found = 0;
  for (const Key& key : known_keys()) found += why_idle(e, key.path).empty() ? 0 : 1;
  // All that is unfinished; alpha, momentum, nesterov, optimizer_options; what the cosine schedule has no use for; map, ignore.
  EXPECT_EQ(found, 2u + 4u + 10u + 2u);
}

TEST(Inert, ASchedulesOwnKeysAreNot) {
  const auto inert = [](const std::string& schedule) {
    return inert_keys_of(loaded(required_keys + "train.epochs = 5\ntrain.schedule = { " + schedule + " }\n"));
  };
  EXPECT_TRUE(inert("name = \"one_cycle\", pct_start = 0.2, div_factor = 10, final_div_factor = 10").empty());
  EXPECT_TRUE(
      inert("name = \"cosine_restarts\", restart_epochs = 2, restart_factor = 2, min_lr = 1e-5, warmup_steps = 3")
          .empty());
  EXPECT_TRUE(inert("name = \"table\", points = [[0, 1]]").empty());
  EXPECT_TRUE(inert("name = \"plateau\", plateau_factor = 0.5, plateau_patience = 2, min_lr = 1e-5, warmup_epochs = 1")
                  .empty());
  EXPECT_TRUE(inert("name = \"step\", min_lr = 1e-5").empty());
  // Longer than the run, but of no effect.
  EXPECT_EQ(inert("name = \"one_cycle\", warmup_epochs = 9, min_lr = 1e-5"),
            (std::vector<std::string>{"train.schedule.warmup_epochs", "train.schedule.min_lr"}));
}

TEST(Write, ReadsBackEqual) {
  for (const std::string& text : {required_keys, everything}) {
    const Experiment first = loaded(text);
    const Experiment second = loaded(written(first));
    EXPECT_EQ(values_of(first), values_of(second));
    EXPECT_EQ(inert_keys_of(first), inert_keys_of(second));
    EXPECT_EQ(first.model_options, second.model_options);
    EXPECT_EQ(first.data_options, second.data_options);
    EXPECT_EQ(written(first), written(second));
  }
}

TEST(Write, EveryKeyIsWritten) {
  const std::string text = written(loaded(everything));
  for (const Key& key : known_keys()) {
    const std::string name(key.name());
    const bool found =
        text.find(name + " = ") != std::string::npos || text.find("[" + key.path + "]") != std::string::npos;
    EXPECT_TRUE(found) << key.path;
  }
}

TEST(Write, KeysStandInTheOrderOfTheirTable) {
  const std::string text = written(loaded(everything));
  const char* order[] = {"[experiment]", "[model]",  "[model.options]", "[data]",       "[data.options]",
                         "[data.synth]", "[train]",  "[eval]",          "[checkpoint]", "[metrics]",
                         "[memory]",     "[record]", "[init]",          "[rescue]",     "[sweep]"};
  size_t last = 0;
  for (const char* header : order) {
    const size_t at = text.find(std::string("\n") + header + "\n");
    ASSERT_NE(at, std::string::npos) << header;
    EXPECT_GT(at, last) << header;
    last = at;
  }
}

TEST(Write, PathsAreAbsoluteSoThatTheFileCanMove) {
  const TemporaryFolder folder;
  const auto file = folder.write("x.toml", required_keys + "init.from = \"weights\"\n");
  const Experiment moved = loaded(written(load_experiment(file)));
  EXPECT_EQ(moved.init.from, folder.path() / "weights");
}

}  // namespace

}  // namespace headroom
