#include "config/keys.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "config/check_keys.hpp"
#include "config/fields.hpp"
#include "config/literals.hpp"
#include "config/old_keys.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

TEST(Keys, EveryKeyHasItsMemberAndTheOtherWayRound) {
  Experiment experiment;
  experiment.data.split.emplace();
  experiment.train.early_stop.emplace();
  experiment.rescue.emplace();
  std::vector<std::string> bound, known;
  each_field(experiment, [&](std::string_view path, auto&&) { bound.emplace_back(path); });
  for (const Key& key : known_keys()) known.push_back(key.path);
  EXPECT_EQ(bound, known);
}

TEST(Keys, AreUniqueAndExplained) {
  std::set<std::string> seen;
  for (const Key& key : known_keys()) {
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.help.empty()) << key.path;
    EXPECT_FALSE(allowed(key).empty()) << key.path;
    EXPECT_EQ(key.type == KeyType::choice || key.type == KeyType::optimizer, !key.choices.empty()) << key.path;
  }
}

TEST(Keys, DefaultsAreAllowed) {
  const Experiment defaults;
  Experiment target;
  target.data.split.emplace();
  target.train.early_stop.emplace();
  std::map<std::string, std::string> literals;
  each_field(defaults, [&](std::string_view path, const auto& field) {
    literals[std::string(path)] = value_literal(*find_key(path), field);
  });
  each_field(target, [&](std::string_view path, auto&& field) {
    const Key& key = *find_key(path);
    const std::string& text = literals[key.path];
    if (text.empty() || key.required) return;
    toml::table holder = parse_literal(text);
    EXPECT_TRUE(read_value(key, *holder.get("value"), field)) << key.path << " = " << text;
  });
}

TEST(Keys, SayWhatTheyChangeForSectionsAndOptionsToo) {
  EXPECT_TRUE(is_cost("memory"));
  EXPECT_TRUE(is_cost("memory.limit"));
  EXPECT_FALSE(is_cost("train"));
  EXPECT_FALSE(is_cost("model.options.width"));
  EXPECT_TRUE(is_subject("rescue"));
  EXPECT_TRUE(is_subject("data.synth.files"));
  EXPECT_FALSE(is_subject("experiment"));
  EXPECT_TRUE(is_probed("model.options.width"));
  EXPECT_TRUE(is_probed("train.optimizer"));
  EXPECT_TRUE(is_probed("train.optimizer_options.momentum"));
  EXPECT_FALSE(is_cost("train.optimizer_options.momentum"));
  EXPECT_FALSE(is_probed("train.schedule"));
  EXPECT_FALSE(is_cost("trai") || is_subject("trai"));
  EXPECT_TRUE(is_probed("trai"));
}

TEST(Keys, SectionsAreKnownByTheirKeys) {
  EXPECT_TRUE(is_section("train"));
  EXPECT_TRUE(is_section("train.optimizer"));
  EXPECT_FALSE(is_section("train.epochs"));
  EXPECT_FALSE(is_section("trai"));
  const std::vector<std::string> sections = {"experiment", "model",  "data",   "train", "eval",   "checkpoint",
                                             "metrics",    "memory", "record", "init",  "rescue", "sweep"};
  EXPECT_EQ(names_under(""), sections);
  const std::vector<std::string> splits = {"train", "val", "test", "seed"};
  EXPECT_EQ(names_under("data.split"), splits);
}

// Users' spellings, each answered by the key they want.
TEST(OldKeys, NameTheNewOne) {
  const std::pair<const char*, const char*> spellings[] = {
      {"compute_metrics_online", "metrics.mode"},
      {"CACHE_SIZE_GB", "data.cache_size"},
      {"NUM_WORKERS", "data.num_workers"},
      {"accumulation_steps", "train.gradient_accumulation_steps"},
      {"BATCH_SIZE", "train.batch_size"},
      {"num_epochs", "train.epochs"},
      {"lr", "train.optimizer.lr"},
      {"learning_rate", "train.optimizer.lr"},
      {"max_epochs", "train.epochs"},
      {"clip_grad_norm", "train.clip_norm"},
      {"gradient_clip_val", "train.clip_norm"},
      {"gradient_clip_algorithm", "clip_value is \"value\""},
      {"clip_grad_value", "train.clip_value"},
      {"RMSprop", "train.optimizer.name"},
      {"OneCycleLR", "train.schedule.name"},
      {"param_groups", "train.groups"},
      {"freeze_backbone", "freeze = true"},
      {"CosineAnnealingWarmRestarts", "train.schedule.name"},
      {"ReduceLROnPlateau", "train.schedule.name"},
      {"T_mult", "train.schedule.restart_factor"},
      {"accumulate_grad_batches", "train.gradient_accumulation_steps"},
      {"persistent-workers", "data.persistent_workers"},
      {"device_train_microbatch_size", "train.micro_batch"},
      {"weight_decay", "train.optimizer.weight_decay"},
      {"patience", "train.early_stop.patience"},
      {"seed", "experiment.seed"},
      {"num_episodes", "data.max_groups"},
      {"train_ratio", "[data.split]"},
      {"log_every_n_steps", "train.log_every"},
      {"save_top_k", "checkpoint.keep"},
      {"check_val_every_n_epoch", "eval.every_epochs"},
      {"optimizer", "[train.optimizer]"},
      {"resume_from_checkpoint", "headroom run --resume"},
  };
  for (const auto& [old, key] : spellings)
    EXPECT_NE(meant_by_name(old).find(key), std::string::npos) << old << meant_by_name(old);
  EXPECT_EQ(meant_by_name("kl_weight"), "");
}

TEST(OldKeys, AnswerWithKeysThatExist) {
  for (const OldKey& old : all_old_keys()) {
    EXPECT_EQ(old.old, normalised(old.old));
    EXPECT_TRUE(old.key.empty() ? !old.note.empty() : find_key(old.key) || is_section(old.key)) << old.old;
    EXPECT_TRUE(std::ranges::none_of(known_keys(), [&](const Key& key) { return key.name() == old.old; }))
        << old.old << " is a key today";
    EXPECT_EQ(find_old_key(old.old), &old) << old.old << " stands twice";
  }
}

TEST(OldWords, AreAnsweredWithAChoiceOfTheirKey) {
  for (const OldWord& old : all_old_words()) {
    EXPECT_EQ(old.old, normalised(old.old));
    const Key* key = find_key(old.key);
    ASSERT_NE(key, nullptr) << old.key;
    EXPECT_EQ(std::ranges::count(key->choices, old.word), 1) << old.old;
    EXPECT_EQ(std::ranges::count(key->choices, old.old), 0) << old.old;
    EXPECT_EQ(find_old_word(old.key, old.old), old.word) << old.old << " stands twice";
  }
}

TEST(Nearest, FindsSlipsAndNothingElse) {
  const std::vector<std::string> known = {"batch_size", "epochs", "lr", "adam", "adamw"};
  EXPECT_EQ(nearest("batch_sise", known), "batch_size");
  EXPECT_EQ(nearest("bacth_size", known), "batch_size");
  EXPECT_EQ(nearest("batchsize", known), "batch_size");
  EXPECT_EQ(nearest("epoch", known), "epochs");
  EXPECT_EQ(nearest("adamv", known), "adamw");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest("temperature", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), known), "");
}

}  // namespace

}  // namespace headroom
