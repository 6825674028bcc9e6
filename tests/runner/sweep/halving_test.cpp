#include "sweep/halving.hpp"

#include <gmock/gmock.h>
#include <random>

#include "../config/files.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Halving rungs(std::vector<int64_t> epochs, int64_t reduction = 3) {
  return {.rung_epochs = std::move(epochs), .reduction = reduction};
}

std::vector<Climb> at_first_rung(const std::vector<double>& metrics) {
  std::vector<Climb> trials;
  for (const double metric : metrics) trials.push_back({.metrics = {metric}});
  return trials;
}

// The paper's figure 1: nine trials, a third goes on, 1, 3 and 9 epochs.
TEST(Halving, NineTrialsAreThreeThenOne) {
  const Halving halving = rungs({1, 3, 9});
  std::vector<Climb> trials = at_first_rung({0.9, 0.2, 0.8, 0.7, 0.1, 0.6, 0.3, 0.5, 0.4});
  EXPECT_THAT(promotions(trials, halving, true), ElementsAre(0, 1, 0, 0, 1, 0, 1, 0, 0));
  trials[1].metrics.push_back(0.15);
  trials[4].metrics.push_back(0.09);
  EXPECT_THAT(promotions(trials, halving, true), ElementsAre(0, 1, 0, 0, 1, 0, 1, 0, 0)) << "two of three have come";
  trials[6].metrics.push_back(0.05);
  EXPECT_THAT(promotions(trials, halving, true), ElementsAre(0, 1, 0, 0, 1, 0, 2, 0, 0));
}

TEST(Halving, NobodyWaitsForAllOthers) {
  std::vector<Climb> trials(9);
  trials[0].metrics = {0.5}, trials[1].metrics = {0.6}, trials[2].metrics = {0.7};
  EXPECT_THAT(promotions(trials, rungs({1, 3, 9}), true), ElementsAre(1, 0, 0, 0, 0, 0, 0, 0, 0));
}

// What was promoted early may turn out to be none of the best: ASHA's price, never taken back.
TEST(Halving, APromotionStands) {
  const std::vector<Climb> trials = at_first_rung({0.5, 0.6, 0.7, 0.1, 0.2, 0.3});
  EXPECT_THAT(promotions(trials, rungs({1, 3}), true), ElementsAre(1, 0, 0, 1, 1, 0));
}

TEST(Halving, TheMoreMayBeTheBetter) {
  const std::vector<Climb> trials = at_first_rung({0.5, 0.6, 0.7});
  EXPECT_THAT(promotions(trials, rungs({1, 3}), false), ElementsAre(0, 0, 1));
}

TEST(Halving, NoMetricIsTheWorst) {
  for (const bool lower_wins : {true, false}) {
    EXPECT_THAT(promotions(at_first_rung({NAN, 0.6, NAN}), rungs({1, 3}), lower_wins), ElementsAre(0, 1, 0));
  }
}

TEST(Halving, WhatIsOutDoesNotCount) {
  std::vector<Climb> trials = at_first_rung({0.5, 0.6, 0.7, 0.8});
  trials[1] = {.metrics = {}, .is_out = true};
  EXPECT_THAT(promotions(trials, rungs({1, 3}), true), ElementsAre(1, 0, 0, 0));
  trials[0] = trials[1];
  EXPECT_THAT(promotions(trials, rungs({1, 3}), true), ElementsAre(0, 0, 1, 0)) << "two of four, and no third to come";
}

TEST(Halving, OneGoesOnWhereFewCame) {
  std::vector<Climb> trials = at_first_rung({0.5, 0.4});
  EXPECT_THAT(promotions(trials, rungs({1, 3, 9}), true), ElementsAre(0, 1));
  trials[1].metrics.push_back(0.3);
  EXPECT_THAT(promotions(trials, rungs({1, 3, 9}), true), ElementsAre(0, 2));
}

// Whatever the order in which metrics become known, the end is the same, and no step takes anything back.
TEST(Halving, TheOrderOfEndsChangesNothing) {
  const Halving halving = rungs({1, 2, 4, 8}, 2);
  constexpr size_t count = 23;
  const auto metric_at = [](size_t trial, size_t rung) { return static_cast<double>((trial * 7 + rung * 5) % 23); };
  std::vector<size_t> expected;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 draw(seed);
    std::vector<Climb> trials(count);
    std::vector<size_t> reach = promotions(trials, halving, true);
    for (;;) {
      std::vector<size_t> running;
      for (size_t i = 0; i < count; ++i) {
        if (trials[i].metrics.size() <= reach[i]) running.push_back(i);
      }
      if (running.empty()) break;
      Climb& ended = trials[running[draw() % running.size()]];
      const auto number = static_cast<size_t>(&ended - trials.data());
      ended.metrics.push_back(metric_at(number, ended.metrics.size()));
      const std::vector<size_t> now = promotions(trials, halving, true);
      for (size_t i = 0; i < count; ++i) ASSERT_GE(now[i], reach[i]) << "seed " << seed << ", trial " << i;
      reach = now;
    }
    if (expected.empty()) expected = reach;
    ASSERT_EQ(reach, expected) << "seed " << seed;
  }
  EXPECT_EQ(*std::ranges::max_element(expected), 3u);
}

Halving halving_in(const std::string& lines) {
  const TemporaryFolder folder;
  Experiment experiment = load_experiment(folder.write("x.toml", required_keys + lines));
  return halving_of(read_sweep(*experiment.sweep), experiment);
}

TEST(Halving, RungsRiseToTheLastEpoch) {
  const auto ends = [](const std::string& epochs, const std::string& lines) {
    return halving_in("[train]\nepochs = " + epochs + "\n[sweep]\nstrategy = \"asha\"\n\"experiment.seed\" = [1]\n" +
                      lines)
        .rung_epochs;
  };
  EXPECT_THAT(ends("27", ""), ElementsAre(1, 3, 9, 27));
  EXPECT_THAT(ends("30", ""), ElementsAre(1, 3, 9, 27, 30));
  EXPECT_THAT(ends("16", "min_epochs = 2\nreduction = 4\n"), ElementsAre(2, 8, 16));
  EXPECT_THAT(ends("3", "min_epochs = 2\nreduction = 1000000000000000\n"), ElementsAre(2, 3));
  EXPECT_FALSE(halving_in("[sweep]\n\"experiment.seed\" = [1]\n").is_on());
}

TEST(Halving, RefusesWhatCannotDecide) {
  const auto refused = [](const std::string& lines) { return refusal([&] { halving_in(lines); }); };
  const std::string asha = "[sweep]\nstrategy = \"asha\"\n";
  EXPECT_THAT(refused("[train]\nepochs = 3\n" + asha + "\"train.epochs\" = [4]\n"), HasSubstr("train.epochs is swept"));
  EXPECT_THAT(refused(asha + "\"experiment.seed\" = [1]\n"), HasSubstr("min_epochs is 1 where train.epochs is 1"));
  EXPECT_THAT(refused("[train]\nepochs = 9\n[eval]\nevery_epochs = 2\n" + asha + "\"experiment.seed\" = [1]\n"),
              HasSubstr("by then there is no val/loss"));
  EXPECT_THAT(refused("[sweep]\nreduction = 2\n\"experiment.seed\" = [1]\n"),
              HasSubstr("sweep.reduction is for strategy = \"asha\""));
  EXPECT_THAT(refused(asha + "reduction = 1\n"), HasSubstr("must be an integer of at least 2"));
  EXPECT_THAT(refused("[sweep]\nstrategy = \"hyperband\"\n"), HasSubstr("it must be \"all\" or \"asha\""));
}

}  // namespace
}  // namespace headroom
