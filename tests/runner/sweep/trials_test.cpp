#include "sweep/trials.hpp"

#include <gmock/gmock.h>
#include <set>

#include "../config/files.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<Trial> trials_of(const std::string& lines) {
  const TemporaryFolder folder;
  Experiment experiment = load_experiment(folder.write("x.toml", required_keys + lines));
  return list_trials(read_sweep(*experiment.sweep), experiment);
}

std::vector<std::string> ids_of(const std::string& lines) {
  std::vector<std::string> ids;
  for (const Trial& trial : trials_of(lines)) ids.push_back(trial.id);
  return ids;
}

std::string refusal_of_lines(const std::string& lines) {
  const TemporaryFolder folder;
  const auto file = folder.write("x.toml", required_keys + lines);
  const std::string sentence = refusal([&] {
    Experiment experiment = load_experiment(file);
    list_trials(read_sweep(*experiment.sweep), experiment);
  });
  return replaced(sentence, file.string(), "FILE");
}

TEST(Trials, AGridTriesEveryCombinationInTheOrderItIsWritten) {
  EXPECT_THAT(ids_of("[sweep]\n\"train.precision\" = [\"fp32\", \"fp64\"]\n\"train.batch_size\" = [16, 8]\n"),
              ElementsAre("001_precision=fp32_batch_size=16", "002_precision=fp32_batch_size=8",
                          "003_precision=fp64_batch_size=16", "004_precision=fp64_batch_size=8"));
}

TEST(Trials, RangesListTheirValues) {
  const auto values = [](const std::string& range) {
    std::vector<std::string> list;
    for (const Trial& trial : trials_of("[sweep]\n" + range + "\n")) list.push_back(trial.settings[0].second);
    return list;
  };
  EXPECT_THAT(values("\"train.batch_size\" = { from = 8, to = 32, step = 8 }"), ElementsAre("8", "16", "24", "32"));
  EXPECT_THAT(values("\"train.batch_size\" = { from = 8, to = 70, step = 2, log = true }"),
              ElementsAre("8", "16", "32", "64"));
  EXPECT_THAT(values("\"train.batch_size\" = { from = 1, to = 3, count = 9 }"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(values("\"train.optimizer.lr\" = { from = 1e-4, to = 1e-2, count = 3, log = true }"),
              ElementsAre("1e-4", "0.001", "0.01"));
  EXPECT_THAT(values("\"train.optimizer.lr\" = { from = 0.1, to = 0.3, step = 0.1 }"),
              ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(values("\"train.optimizer.lr\" = { from = 1, to = 2, step = 1 }"), ElementsAre("1.0", "2.0"));
  EXPECT_THAT(values("model.options.width = { from = 2, to = 4, step = 2 }"), ElementsAre("2", "4"));
}

TEST(Trials, AConstraintKeepsWhatFulfilsIt) {
  const std::string grid =
      "[sweep]\n\"train.batch_size\" = [8, 16, 32]\n\"train.gradient_accumulation_steps\" = [1, 2, 4]\n";
  EXPECT_THAT(
      ids_of(grid + "constraint = \"train.batch_size * train.gradient_accumulation_steps == 32\"\n"),
      ElementsAre("001_batch_size=8_gradient_accumulation_steps=4", "002_batch_size=16_gradient_accumulation_steps=2",
                  "003_batch_size=32_gradient_accumulation_steps=1"));
  EXPECT_THAT(trials_of(grid + "constraint = \"not (train.batch_size > 8 or train.epochs != 1)\"\n"), SizeIs(3));
  EXPECT_THAT(trials_of(grid + "constraint = \"train.precision == 'fp32' and -train.batch_size / 2 + 9 % 2 >= -7\"\n"),
              SizeIs(6));
}

TEST(Trials, ConstraintsThatCannotBeReadNameTheirPlace) {
  const auto refused = [](const std::string& constraint) {
    return refusal_of_lines("[sweep]\n\"train.batch_size\" = [8]\nconstraint = \"" + constraint + "\"\n");
  };
  EXPECT_EQ(refused("train.batch_size == "),
            "[config] FILE:6:35: sweep.constraint: expected a key, a number or a word in quotes, found the end");
  EXPECT_EQ(refused("train.batch_size = 8"),
            "[config] FILE:6:32: sweep.constraint: expected an operator, as == or *, or the end, found \"=\"");
  std::string endless = "1";
  for (int i = 0; i < 100'000; ++i) endless += "+1";
  EXPECT_EQ(refused(endless), "[config] FILE:6:2017: sweep.constraint: at most 1000 operators, found \"1\"");
  EXPECT_EQ(refused("(train.batch_size"), "[config] FILE:6:32: sweep.constraint: expected ), found the end");
  EXPECT_EQ(refused("8 < train.batch_sise"),
            "[config] FILE:6:19: sweep.constraint: train.batch_sise is not a key; did you mean train.batch_size (an "
            "integer of at least 1)?");
  EXPECT_EQ(refused("train.batch_size * 2"),
            "[config] FILE:6:15: sweep.constraint gives the number 16; it must compare something, as with ==");
  EXPECT_EQ(refused("train.precision * 2 == 8"),
            "[config] FILE:6:31: sweep.constraint: \"*\" needs numbers, and is given the word \"fp32\"");
  EXPECT_EQ(refused("model.options.width == 2"),
            "[config] FILE:6:15: sweep.constraint: model.options.width is neither swept nor set in this experiment");
  EXPECT_EQ(refused("train.batch_size == 9"), "[sweep] FILE: no combination of [sweep] fulfils sweep.constraint");
}

TEST(Trials, RangesThatAreNoneNameTheirPlace) {
  const std::string how =
      "; a range is written { from = 8, to = 64, step = 8 }, with count = 4 in place of step, and log = true for equal "
      "ratios";
  const auto refused = [](const std::string& range) {
    return refusal_of_lines("[sweep]\n\"train.batch_size\" = " + range + "\n");
  };
  EXPECT_EQ(refused("{ to = 8 }"), "[config] FILE:5:22: sweep.\"train.batch_size\" has no from" + how);
  EXPECT_EQ(refused("{ from = 1, to = 8 }"),
            "[config] FILE:5:22: sweep.\"train.batch_size\" has neither step nor count, which a grid needs" + how);
  EXPECT_EQ(refused("{ from = 9, to = 8, step = 1 }"),
            "[config] FILE:5:22: sweep.\"train.batch_size\" goes from more to less" + how);
  EXPECT_EQ(
      refused("{ from = 0, to = 8, step = 1 }"),
      "[config] FILE:5:31: sweep.\"train.batch_size\".from is the integer 0; it must be an integer of at least 1");
  EXPECT_EQ(refused("{ from = 1, to = 8, step = 0 }"),
            "[config] FILE:5:49: sweep.\"train.batch_size\" has the integer 0 for step" + how);
  for (const char* endless :
       {"{ from = 1, to = 1000000, step = 1 }", "{ from = 1, to = 1000000, step = 1.0001, log = true }"}) {
    EXPECT_EQ(refused(endless), "[config] FILE:5:22: sweep.\"train.batch_size\" lists more than 10000 values" + how);
  }
  EXPECT_EQ(refused("{ from = 1, to = 8, step = inf }"),
            "[config] FILE:5:49: sweep.\"train.batch_size\" has the number inf for step" + how);
  EXPECT_EQ(refused("{ from = 1, to = 8, by = 2 }"), "[config] FILE:5:42: sweep.\"train.batch_size\" has by" + how);
}

const std::string random_lines =
    "[sweep]\nmethod = \"random\"\ntrials = 20\nseed = 7\n\"train.batch_size\" = [8, 16]\n"
    "\"train.optimizer.lr\" = { from = 1e-4, to = 1e-2, log = true }\n";

TEST(Trials, ARandomSearchDrawsTheSameFromTheSameSeed) {
  const auto first = trials_of(random_lines), again = trials_of(random_lines);
  const auto other = trials_of(replaced(random_lines, "seed = 7", "seed = 8"));
  ASSERT_THAT(first, SizeIs(20));
  std::set<std::string> batch_sizes;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].settings, again[i].settings);
    batch_sizes.insert(first[i].settings[0].second);
    const double lr = std::stod(first[i].settings[1].second);
    EXPECT_GE(lr, 1e-4);
    EXPECT_LE(lr, 1e-2);
  }
  EXPECT_THAT(batch_sizes, SizeIs(2));
  EXPECT_NE(first[0].settings, other[0].settings);
}

TEST(Trials, ARandomSearchTriesNothingTwice) {
  const auto trials = trials_of(
      "[sweep]\nmethod = \"random\"\ntrials = 20\n\"train.batch_size\" = [8, 16, 32]\n"
      "constraint = \"train.batch_size > 8\"\n");
  EXPECT_THAT(trials, SizeIs(2)) << "there is no third";
}

TEST(Trials, SettingsOfAnotherMethodAreRefused) {
  EXPECT_EQ(refusal_of_lines("[sweep]\ntrials = 3\n\"train.batch_size\" = [8]\n"),
            "[config] FILE:5:10: sweep.trials is for method = \"random\"; a grid is tried whole");
  EXPECT_EQ(
      refusal_of_lines("[sweep]\nmethod = \"random\"\n\"train.batch_size\" = [8]\n"),
      "[config] FILE:5:10: sweep.method is \"random\", and sweep.trials is missing; say how many to draw, as trials "
      "= 20");
  EXPECT_EQ(refusal_of_lines("[sweep]\nmethod = \"bayes\"\n\"train.batch_size\" = [8]\n"),
            "[config] FILE:5:10: sweep.method is the string \"bayes\"; it must be \"grid\" or \"random\"");
}

TEST(Trials, NamesOfFoldersAreHarmless) {
  const auto trials =
      trials_of("[sweep]\n\"train.optimizer\" = [{ name = \"sgd\", lr = 0.1 }]\n\"data.source\" = [\"../a b.so\"]\n");
  EXPECT_EQ(trials.at(0).id.find_first_of("/ {}\",'"), std::string::npos) << trials[0].id;
}

// A list's paths are relative to the file that has the list, and a trial is the experiment with the values in it.
TEST(Trials, ATrialIsTheExperimentWithItsValues) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("deep/x.toml",
                   "extends = \"../base.toml\"\n[sweep]\n\"init.from\" = [\"weights/a.safetensors\"]\n"
                   "\"train.optimizer\" = [{ lr = 0.5 }]\n\"train.batch_size\" = {from = 4, to = 4, step = 1}\n");
  folder.write("base.toml", required_keys + "train.optimizer = { name = \"sgd\", lr = 0.1 }\ntrain.batch_size = 2\n");
  Experiment experiment = load_experiment(file);
  const auto trials = list_trials(read_sweep(*experiment.sweep), experiment);
  ASSERT_THAT(trials, SizeIs(1));
  const Experiment trial = load_trial(file, {}, trials[0].choices);
  EXPECT_EQ(trial.init.from, folder.path() / "deep/weights/a.safetensors");
  EXPECT_EQ(trial.train.optimizer.lr, 0.5);
  EXPECT_EQ(trial.train.optimizer.name, "sgd") << "a table changes what it names";
  EXPECT_EQ(trial.train.batch_size, 4);
  EXPECT_FALSE(trial.sweep);
  EXPECT_TRUE(trial.inert.empty());
}

}  // namespace
}  // namespace headroom
