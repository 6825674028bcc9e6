// [rescue]: rungs are checked when the file is read, laid over everything else, and say what they do to the
// mathematics.
#include "config/rescue.hpp"

#include <gtest/gtest.h>

#include "config/keys.hpp"
#include "files.hpp"

namespace headroom {

namespace {

const std::string start = required_keys + R"([train]
batch_size = 16
gradient_accumulation_steps = 4
[model.options]
hidden = 128
)";

// Lines 9 and on.
std::string ladder(const std::string& rungs) { return start + "[rescue]\nrungs = [\n" + rungs + "\n]\n"; }

Experiment loaded(const std::string& text, const std::vector<Override>& overrides = {}) {
  const TemporaryFolder folder;
  return load_experiment(folder.write("experiment.toml", text), overrides);
}

TEST(Rescue, IsOffUnlessWritten) {
  EXPECT_FALSE(loaded(start).rescue);
  const std::string text = experiment_to_toml(loaded(start), {}, {}, std::nullopt);
  EXPECT_EQ(text.find("rescue"), std::string::npos) << text;
}

TEST(Rescue, LaysItsRungsOverTheFileAndOverWhatIsSet) {
  const std::string text = ladder(R"({ "train.batch_size" = 8, "train.gradient_accumulation_steps" = 8 },
{ model = { options.hidden = 64 }, data.num_workers = 0 },
{ train.batch_size = 4 })");
  const Experiment none = loaded(text, {{"train.batch_size", "32"}});
  EXPECT_EQ(none.rescue->rungs.size(), 3u);
  EXPECT_EQ(none.train.batch_size, 32);
  const Experiment one = loaded(text, {{"train.batch_size", "32"}, {"rescue.taken", "1"}});
  EXPECT_EQ(one.train.batch_size, 8);
  EXPECT_EQ(one.train.gradient_accumulation_steps, 8);
  EXPECT_EQ(one.model_options["hidden"].value<int64_t>(), 128);
  const Experiment all = loaded(text, {{"rescue.taken", "3"}});
  EXPECT_EQ(all.train.batch_size, 4);
  EXPECT_EQ(all.data.num_workers, 0);
  EXPECT_EQ(all.model_options["hidden"].value<int64_t>(), 64);
  EXPECT_EQ(rung_text(all.rescue->rungs[1]), "data.num_workers = 0, model.options.hidden = 64");
}

TEST(Rescue, KnowsWhichRungsChangeTheMathematics) {
  const Experiment e = loaded(ladder(R"({ train = { batch_size = 8, gradient_accumulation_steps = 8 } },
{ data.num_workers = 0, memory.limit = "off", experiment.device = "cpu" },
{ train.batch_size = 4 },
{ train = { batch_size = 2, gradient_accumulation_steps = 16 } },
{ data.options.stride = 4 },
{ model.options.hidden = 64 },
{ train.precision = "fp32" },
{ train.gradient_accumulation_steps = 16 })"));
  std::vector<bool> keeps;
  for (size_t i = 0; i < e.rescue->rungs.size(); ++i) keeps.push_back(keeps_mathematics(*e.rescue, i, false));
  EXPECT_EQ(keeps, (std::vector<bool>{true, true, false, true, false, false, false, true}));
  EXPECT_FALSE(keeps_mathematics(*e.rescue, 0, /*couples_samples=*/true)) << "its batch is what the model sees";
  EXPECT_TRUE(keeps_mathematics(*e.rescue, 1, true));
}

TEST(Rescue, WhatIsMeasuredIsMathematicsWhereItDecidesTheRate) {
  const std::string text = ladder(R"({ metrics.mode = "sampled" })");
  EXPECT_TRUE(loaded(text, {}).rescue->rungs[0].keeps_mathematics);
  EXPECT_FALSE(loaded(text, {{"train.schedule.name", "plateau"}}).rescue->rungs[0].keeps_mathematics);
}

// A file that Headroom wrote has its rungs in its values already: what they did is not to be seen there.
TEST(Rescue, SurvivesBeingWritten) {
  const std::string text = ladder("{ train.batch_size = 8 },\n{ data.num_workers = 0 }");
  const Experiment taken = loaded(text, {{"rescue.taken", "1"}});
  EXPECT_FALSE(taken.rescue->rungs[0].keeps_mathematics);
  const std::string written = experiment_to_toml(taken, taken.model_options, taken.data_options, std::nullopt);
  const Experiment again = loaded(written);
  EXPECT_EQ(again.train.batch_size, 8);
  EXPECT_EQ(again.rescue->taken, 1);
  EXPECT_FALSE(again.rescue->rungs[0].keeps_mathematics);
  EXPECT_TRUE(again.rescue->rungs[1].keeps_mathematics);
  EXPECT_EQ(experiment_to_toml(again, again.model_options, again.data_options, std::nullopt), written);
  const Experiment next = loaded(written, {{"rescue.taken", "2"}});
  EXPECT_EQ(next.data.num_workers, 0);
}

// "a.a. ... /a.a. ...": what looks like paths of a few dots each.
std::string slashed_dots(int times) {
  std::string path, once;
  for (int i = 0; i < 60; ++i) once += "a.";
  for (int i = 0; i < times; ++i) path += once + "/";
  return path + "a";
}

const BrokenFile cases[] = {
    {"UnknownKey", ladder("{ train.batch_sise = 8 }"),
     "[config] FILE:11:9: unknown key train.batch_sise; did you mean train.batch_size (an integer of at least 1)?"},
    {"UnknownKeyInQuotes", ladder("{ data.num_workers = 0 },\n{ \"train.batch_sise\" = 8 }"),
     "[config] FILE:12:3: unknown key train.batch_sise; did you mean train.batch_size (an integer of at least 1)?"},
    {"WrongValue", ladder("{ \"train.batch_size\" = 0 }"),
     "[config] FILE:11:24: train.batch_size is the integer 0; it must be an integer of at least 1"},
    {"AtOddsWithTheRest", ladder("{ \"train.micro_batch\" = 16 },\n{ \"train.batch_size\" = 8 }"),
     "[config] FILE:11:25: train.micro_batch is 16 but train.batch_size is 8; a micro-batch is a slice of a batch: "
     "lower it or write \"auto\""},
    {"Identity", ladder("{ experiment.name = \"smaller\" }"),
     "[config] FILE:11:14: a rung of [rescue] cannot set experiment.name: rungs change how a run is done, not which "
     "run "
     "it is; write it outside of [rescue]"},
    {"Itself", ladder("{ \"rescue.taken\" = 1 }"),
     "[config] FILE:11:3: a rung of [rescue] cannot set rescue.taken: rungs change how a run is done, not which run it "
     "is; write it outside of [rescue]"},
    {"Twice", ladder("{ train.batch_size = 8, \"train.batch_size\" = 4 }"),
     "[config] FILE:11:25: a rung of [rescue] sets train.batch_size twice; set it once"},
    {"DeepKeyInQuotes", ladder("{ \"" + slashed_dots(3000) + "\" = 1 }"),
     "[config] FILE:11:3: a key of a rung of [rescue] has more than 64 dotted parts; keys need at most four"},
    {"Empty", ladder("{}"),
     "[config] FILE:11:1: a rung of [rescue] sets nothing; write a key, as \"train.batch_size\" = 8"},
    {"NoTable", ladder("\"train.batch_size = 8\""),
     "[config] FILE:10:9: rescue.rungs is the list [\"train.batch_size = 8\"]; it must be a list of tables of keys, as "
     "[{ \"train.batch_size\" = 8 }]"},
    {"SaysItKeepsTheMathematics", ladder("{ keeps_mathematics = true, data.options.stride = 4 }"),
     "[config] FILE:11:1: a rung of [rescue] says that it keeps the mathematics, but what it sets changes them: "
     "data.options.stride = 4; write keeps_mathematics = false, or leave it out"},
    {"TooManyTaken", start + "[rescue]\ntaken = 2\nrungs = [{ data.num_workers = 0 }]\n",
     "[config] FILE:10:9: rescue.taken is 2 but rescue.rungs has 1; it must not be larger"},
};

class BrokenLadder : public testing::TestWithParam<BrokenFile> {};

TEST_P(BrokenLadder, IsRefusedWithThisSentence) { EXPECT_EQ(refusal_of(GetParam()), GetParam().sentence); }

INSTANTIATE_TEST_SUITE_P(Files, BrokenLadder, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

// Plugins' options are checked when the plugin's table is known.
TEST(Rescue, KnowsTheOptionsOfPlugins) {
  const auto option = [](const char* name, OptionType type) {
    OptionSpec spec;
    spec.name = name;
    spec.type = type;
    return spec;
  };
  const OptionTable table = {option("hidden", OptionType::i64), option("path", OptionType::path)};
  const auto said = [&](const std::string& rung) {
    const Experiment experiment = loaded(ladder(rung));
    return refusal([&] { check_rung_options(table, *experiment.rescue, "model.options", "model 'm'"); });
  };
  EXPECT_EQ(said("{ model.options.hidden = 8 }"), "accepted");
  EXPECT_NE(said("{ model.options.hiden = 8 }")
                .find(":11:17: unknown option model.options.hiden of model 'm'; did you mean hidden"),
            std::string::npos);
  EXPECT_NE(said("{ model.options.hidden = \"8\" }").find("write 8 without quotes"), std::string::npos);
  EXPECT_NE(said("{ model.options.path = \"x\" }").find("it is a path"), std::string::npos);
}

}  // namespace

}  // namespace headroom
