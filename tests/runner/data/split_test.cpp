// divide(): whole groups, each once, by the fractions asked for; a source's own splits as they are.

#include "data/split.hpp"

#include <gtest/gtest.h>

#include "../record/temporary_folder.hpp"
#include "fake_source.hpp"

namespace headroom {
namespace {

DataSection with(double train, double val, double test, uint64_t seed = 0) {
  DataSection data;
  data.split = SplitFractions{train, val, test, seed};
  return data;
}

std::vector<uint64_t> indices(const Split& split) {
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < split.length(); ++i) all.push_back(split.source_index(i));
  return all;
}

TEST(Split, CountsThroughItsGroups) {
  const Split split("train", 2, {{"b", 10, 2}, {"d", 60, 3}});
  EXPECT_EQ(split.length(), 5u);
  EXPECT_EQ(split.source_split(), 2u);
  EXPECT_EQ(indices(split), (std::vector<uint64_t>{10, 11, 60, 61, 62}));
  EXPECT_EQ(Split("val", 0, {}).length(), 0u);
}

TEST(Splits, AreToldByTheNamesOfTheirGroups) {
  const Splits splits{Split("train", 0, {{"b", 10, 2}, {"d", 60, 3}}), Split("val", 0, {{"c", 12, 4}}), {}};
  EXPECT_EQ(splits.json(), nlohmann::json::parse(R"({"format": 1,
      "train": {"samples": 5, "groups": 2, "names": ["b", "d"]},
      "val": {"samples": 4, "groups": 1, "names": ["c"]}})"));
  const Split many("train", 0, std::vector<Group>(20'000, {"g", 0, 1}));
  const nlohmann::json told = Splits{many, {}, {}}.json().at("train");
  EXPECT_EQ(told.at("groups"), 20'000);
  EXPECT_EQ(told.at("names").size(), 10'000u);
}

TEST(Divide, GivesEveryGroupToOneSplit) {
  FakeData data;
  data.splits = {{"all", {5, 1, 7, 3, 9, 2, 8, 4, 6, 10}}};
  const auto source = open_fake(data);
  const Splits splits = divide(*source, with(0.6, 0.2, 0.2));
  std::vector<bool> seen(55, false);
  for (const Split* split : {&splits.train, &splits.val, &splits.test}) {
    uint64_t last = 0;
    for (const uint64_t index : indices(*split)) {
      ASSERT_FALSE(seen[index]) << "sample " << index << " is in two splits";
      seen[index] = true;
      EXPECT_GE(index, last) << "a split is in the source's order";
      last = index;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 55);
  // Off by at most one group.
  EXPECT_NEAR(static_cast<double>(splits.train.length()), 33.0, 10.0);
  EXPECT_NEAR(static_cast<double>(splits.val.length()), 11.0, 10.0);
}

TEST(Divide, EqualGroupsMeetTheFractionsExactly) {
  FakeData data;
  data.splits = {{"all", std::vector<uint64_t>(20, 5)}};
  const auto source = open_fake(data);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Splits splits = divide(*source, with(0.8, 0.15, 0.05, seed));
    EXPECT_EQ(splits.train.groups().size(), 16u);
    EXPECT_EQ(splits.val.groups().size(), 3u);
    EXPECT_EQ(splits.test.groups().size(), 1u);
  }
}

TEST(Divide, TheSeedDecidesAndRepeats) {
  FakeData data;
  data.splits = {{"all", std::vector<uint64_t>(30, 2)}};
  const auto source = open_fake(data);
  EXPECT_EQ(indices(divide(*source, with(0.5, 0.5, 0, 1)).val), indices(divide(*source, with(0.5, 0.5, 0, 1)).val));
  EXPECT_NE(indices(divide(*source, with(0.5, 0.5, 0, 1)).val), indices(divide(*source, with(0.5, 0.5, 0, 2)).val));
}

TEST(Divide, ASplitWithAFractionGetsAGroup) {
  FakeData data;
  data.splits = {{"all", {1000, 1000, 1}}};
  const auto source = open_fake(data);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Splits splits = divide(*source, with(0.98, 0.01, 0.01, seed));
    EXPECT_GT(splits.train.length(), 0u);
    EXPECT_GT(splits.val.length(), 0u);
    EXPECT_GT(splits.test.length(), 0u);
  }
}

TEST(Divide, AFractionOfZeroIsAnEmptySplit) {
  FakeData data;
  const auto source = open_fake(data);
  const Splits splits = divide(*source, with(1, 0, 0));
  EXPECT_EQ(splits.train.length(), 100u);
  EXPECT_EQ(splits.val.length(), 0u);
  EXPECT_EQ(splits.find("test")->length(), 0u);
  EXPECT_EQ(splits.find("train"), &splits.train);
  EXPECT_EQ(splits.find("all"), nullptr);
}

TEST(Divide, ASourcesOwnSplitsStay) {
  FakeData data;
  data.splits = {{"test", {4}}, {"train", {3, 2}}, {"calibration", {9}}};
  const auto source = open_fake(data);
  const Splits splits = divide(*source, DataSection{});
  EXPECT_EQ(splits.train.source_split(), 1u);
  EXPECT_EQ(splits.train.length(), 5u);
  EXPECT_EQ(splits.val.length(), 0u);
  EXPECT_EQ(splits.test.source_split(), 0u);
  EXPECT_EQ(splits.test.length(), 4u);
}

TEST(Divide, MaxGroupsKeepsTheFirstOfTheShuffle) {
  FakeData data;
  data.splits = {{"train", std::vector<uint64_t>(50, 1)}, {"val", {1}}};
  const auto source = open_fake(data);
  DataSection section;
  section.max_groups = 5;
  const auto five = indices(divide(*source, section).train);
  section.max_groups = 10;
  const auto ten = indices(divide(*source, section).train);
  EXPECT_EQ(five.size(), 5u);
  EXPECT_EQ(ten.size(), 10u);
  EXPECT_TRUE(std::includes(ten.begin(), ten.end(), five.begin(), five.end()));
  EXPECT_NE(five, (std::vector<uint64_t>{0, 1, 2, 3, 4})) << "a sample of the groups, not the first of the file";
  EXPECT_EQ(divide(*source, section).val.length(), 1u);
}

TEST(Divide, SaysWhatCannotBe) {
  FakeData data;
  data.splits = {{"train", {3}}, {"val", {2}}};
  EXPECT_EQ(sentence_of([&] { divide(*open_fake(data), with(0.5, 0.5, 0)); }),
            "[data] data.split: source 'fake' divides its data itself (train, val); remove data.split and use the "
            "source's own option under "
            "[data.options]");
  data.splits = {{"all", {3}}};
  EXPECT_EQ(sentence_of([&] { divide(*open_fake(data), DataSection{}); }),
            "[data] data.split: source 'fake' has 1 group, which cannot fill 3 splits: a group (a recording, a clip) "
            "never crosses splits. Add "
            "recordings, or give fewer splits, as in split = { train = 1.0, val = 0.0, test = 0.0 }");
  data.splits = {{"train", {}}, {"val", {2}}};
  EXPECT_EQ(sentence_of([&] { divide(*open_fake(data), DataSection{}); }),
            "[data] source 'fake' gives no training samples: its split 'train' is missing or empty; check the path and "
            "the windows under "
            "[data.options]");
  data.splits = {{"val", {2}}, {"test", {1}}};
  EXPECT_THROW(divide(*open_fake(data), DataSection{}), Error);
  data.splits = {{"all", {3, 3}}};
  EXPECT_THROW(divide(*open_fake(data), with(0, 0.5, 0.5)), Error);
}

}  // namespace
}  // namespace headroom
