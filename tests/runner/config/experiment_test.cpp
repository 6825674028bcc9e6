#include "config/experiment.hpp"

#include <gtest/gtest.h>

#include "every_key.hpp"

namespace headroom {

namespace {

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
  EXPECT_TRUE(e.train.elastic);
  EXPECT_EQ(e.train.elastic_min, 2);
  EXPECT_EQ(e.train.elastic_restarts, 3);
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
  const auto file =
      folder.write("x.toml", required_keys +
                                 "[train]\noptimizer = { name = \"lib/muon.so\", lr = 0.02, betas = [0.9, 0.99] }\n"
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

}  // namespace

}  // namespace headroom
