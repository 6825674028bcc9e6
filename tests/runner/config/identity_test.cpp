// Identities are kept in run folders: what is expected here never changes.
#include "config/identity.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <set>

#include "config/keys.hpp"
#include "files.hpp"

namespace headroom {

namespace {

using nlohmann::json;
using testing::ElementsAre;

json entries_of(const std::string& text, const json& made = json::object()) {
  return identity_entries(loaded(required_keys + text), made);
}

TEST(Identity, OfDefaults) {
  const json made = {{"model", "m"}, {"content", "c0ffee"}, {"shuffle", "global"}, {"grouped", nullptr}};
  EXPECT_EQ(
      entries_of("", made).dump(),
      R"({"clip_norm":0.0,"content":"c0ffee","ema_decay":0.0,"length":[1,0,0],"max_groups":-1,"model":"m",)"
      R"("normalize":["sampled",10000],"optimizer":["adamw",0.001,0.0,0.9,0.999,1e-08,0.0,false],"passes_over":["stop","fail"],)"
      R"("precision":"fp32","schedule":["constant",0.0,0,0.0,1.0,0.1],"seed":0,"shuffle":"global","window":1})");
}

TEST(Identity, OfWhatIsSet) {
  const json entries = entries_of(
      "experiment.seed = 7\nexperiment.metric = \"val/error\"\ndata.max_groups = 3\ndata.on_bad_sample = \"skip\"\n"
      "data.split = { train = 0.5, val = 0.5, seed = 9 }\n"
      "train = { batch_size = 4, gradient_accumulation_steps = 3, drop_last = true, early_stop = { patience = 5 } }\n");
  EXPECT_EQ(entries.at("seed").dump(), "7");
  EXPECT_EQ(entries.at("max_groups").dump(), "3");
  EXPECT_EQ(entries.at("window").dump(), "12");
  EXPECT_EQ(entries.at("length").dump(), "[1,0,1]");
  EXPECT_EQ(entries.at("split").dump(), "[0.5,0.5,0.0,9]");
  EXPECT_EQ(entries.at("passes_over").dump(), R"(["stop","skip"])");
  EXPECT_EQ(entries.at("early_stop").dump(), R"([5,0.0,"val/error","auto"])");
}

// Keys that came later: where they are not set, runs of earlier builds keep their identity.
TEST(Identity, HoldsLaterKeysWhereTheyDifferFromTheirDefault) {
  EXPECT_FALSE(entries_of("train.optimizer.name = \"rmsprop\"\n").contains("optimizer_alpha"));
  const json entries = entries_of("train.optimizer = { name = \"rmsprop\", alpha = 0.9 }\n");
  EXPECT_EQ(entries.at("optimizer_alpha").dump(), "0.9");
  EXPECT_EQ(entries.at("optimizer").dump(), R"(["rmsprop",0.001,0.0,0.9,0.999,1e-08,0.0,false])");
  EXPECT_EQ(entries_of("train.clip_value = 0.5\n").at("clip_value").dump(), "0.5");
  EXPECT_FALSE(entries_of("train.clip_value = 0\n").contains("clip_value"));
  const json groups = entries_of(
      "train.groups = [{ match = \"a.*\", freeze = true }, { match = \"*.bias\", lr_scale = 0.5, weight_decay = 0 "
      "}]\n");
  EXPECT_EQ(groups.at("groups").dump(), R"([{"freeze":true,"lr_scale":1.0,"match":"a.*","weight_decay":null},)"
                                        R"({"freeze":false,"lr_scale":0.5,"match":"*.bias","weight_decay":0.0}])");
  EXPECT_FALSE(entries_of("train.groups = []\n").contains("groups"));
  EXPECT_THAT(keys_of_entry("groups"), ElementsAre("train.groups"));
  const json table = entries_of("train.schedule = { name = \"table\", points = [[0, 0.5], [5, 1]] }\n");
  EXPECT_EQ(table.at("schedule").dump(), R"(["table",0.0,0,0.0,1.0,0.1])");
  EXPECT_EQ(table.at("schedule_points").dump(), "[[0.0,0.5],[5.0,1.0]]");
  EXPECT_THAT(keys_of_entry("optimizer_alpha"), ElementsAre("train.optimizer.alpha"));
}

TEST(Identity, IsBlindToWhatOnlyCosts) {
  EXPECT_EQ(entries_of(""), entries_of("data.num_workers = 7\ndata.cache_size = \"1 GiB\"\ntrain.micro_batch = 1\n"
                                       "memory.limit = \"8 GiB\"\nmetrics.mode = \"full\"\ncheckpoint.keep = 9\n"));
}

// But for what the run makes of what it loaded, and what its evaluations choose.
TEST(Identity, HoldsEveryKeyThatChangesTheMathematicsAndNoOther) {
  const std::set<std::string> without = {"experiment.name", "data.synth", "rescue.rungs",
                                         "rescue.taken",    "sweep",      "eval.every_epochs"};
  for (const Key& key : known_keys()) {
    const bool costs = key.effect.changes == Changes::cost;
    EXPECT_EQ(key.effect.entry.empty(), costs || without.contains(key.path)) << key.path;
  }
}

TEST(Identity, NamesTheKeysOfAnEntry) {
  EXPECT_THAT(keys_of_entry("passes_over"), ElementsAre("train.on_nonfinite", "data.on_bad_sample"));
  EXPECT_THAT(keys_of_entry("early_stop"), ElementsAre("train.early_stop.patience", "train.early_stop.min_delta",
                                                       "experiment.metric", "experiment.better"));
  EXPECT_THAT(keys_of_entry("optimizer"),
              ElementsAre("train.optimizer.name", "train.optimizer.lr", "train.optimizer.weight_decay",
                          "train.optimizer.betas[0]", "train.optimizer.betas[1]", "train.optimizer.eps",
                          "train.optimizer.momentum", "train.optimizer.nesterov"));
  EXPECT_THAT(keys_of_entry("optimizer_options"), ElementsAre("train.optimizer_options"));
  EXPECT_THAT(keys_of_entry("window"), ElementsAre("train.batch_size x train.gradient_accumulation_steps"));
  EXPECT_THAT(keys_of_entry("init"), ElementsAre("[init]"));
  EXPECT_THAT(keys_of_entry("of_a_later_version"), ElementsAre("of_a_later_version"));
}

}  // namespace

}  // namespace headroom
