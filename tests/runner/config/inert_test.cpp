// Keys that are set and change nothing.
#include <gtest/gtest.h>

#include "every_key.hpp"

namespace headroom {

namespace {

TEST(Inert, OnlyWhatIsSetAndDoesNothingIsNamed) {
  const Experiment e = loaded(required_keys +
                              "experiment.device = \"cpu\"\ndata.pin_memory = false\nmemory.device_limit = \"1 GiB\"\n"
                              "train.epochs = 3\nmemory.limit = \"off\"\n");
  EXPECT_EQ(inert_keys_of(e), std::vector<std::string>{"memory.device_limit"});
  EXPECT_EQ(e.inert[0].why, "experiment.device is \"cpu\"");
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
  // A sweep; alpha, momentum, nesterov, optimizer_options; what the cosine schedule has no use for; map,
  // ignore.
  EXPECT_EQ(found, 1u + 4u + 10u + 2u);
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

}  // namespace

}  // namespace headroom
