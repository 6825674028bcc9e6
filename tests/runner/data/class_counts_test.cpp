// How often a class occurs in a split: the fake source's label is the sample's index.
#include "data/class_counts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_source.hpp"

namespace headroom {
namespace {

TEST(ClassCounts, CountTheValuesOfASplitAlone) {
  FakeData data;
  const auto source = open_fake(data);
  const Split split("train", 0, {{"a", 0, 3}, {"c", 30, 30}});
  const ClassCounts counts = count_classes(*source, split, 1, 32);
  EXPECT_EQ(counts.samples, 33u);
  EXPECT_TRUE(counts.whole);
  EXPECT_EQ(counts.counts[2], 1u);
  EXPECT_EQ(counts.counts[3], 0u) << "of a group that is in another split";
  EXPECT_EQ(counts.counts[31], 1u);
  EXPECT_EQ(counts.others, 28u) << "32 to 59 are none of 32 classes";
}

TEST(ClassCounts, OfASampleAreEvenlySpaced) {
  FakeData data;
  const auto source = open_fake(data);
  const Split split("train", 0, {{"all", 0, 100}});
  const ClassCounts counts = count_classes(*source, split, 1, 100, 7);
  EXPECT_EQ(counts.samples, 7u);
  EXPECT_FALSE(counts.whole);
  for (const size_t there : {0, 14, 28, 42, 57, 71, 85}) EXPECT_EQ(counts.counts[there], 1u) << there;
  EXPECT_TRUE(count_classes(*source, Split("val", 0, {}), 1, 4).whole);
}

TEST(ClassCounts, LeaveOutWhatCannotBeRead) {
  FakeData data;
  data.corrupt = {3, 50};
  const auto source = open_fake(data);
  const ClassCounts counts = count_classes(*source, Split("train", 0, {{"all", 0, 100}}), 1, 100);
  EXPECT_EQ(counts.samples, 98u);
  EXPECT_EQ(counts.unreadable, 2u);
  EXPECT_EQ(counts.counts[3], 0u);
  EXPECT_EQ(counts.counts[4], 1u);
}

TEST(ClassCounts, AreOfIntegers) {
  FakeData data;
  const auto source = open_fake(data);
  EXPECT_THAT(
      [&] {
        count_classes(*source, Split("train", 0, {{"all", 0, 10}}), 2, 4);
      },
      testing::ThrowsMessage<Error>(
          testing::HasSubstr("takes field 'draw' for classes; it is float64, and classes are integers")));
}

}  // namespace
}  // namespace headroom
