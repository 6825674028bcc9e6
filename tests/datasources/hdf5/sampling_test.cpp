#include "hdf5/sampling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hdf5_source {
namespace {

FieldSettings field(Rows rows, uint64_t length, int64_t offset, Pad pad = Pad::none) {
  FieldSettings result;
  result.rows = rows;
  result.length = length;
  result.offset = offset;
  result.pad = pad;
  return result;
}

std::vector<uint64_t> range(const Reach& reach, uint64_t rows) {
  const auto starts = reach.starts(rows);
  if (!starts) return {};
  return {starts->first, starts->last};
}

TEST(Reach, HoldsEveryFieldInsideTheSequence) {
  const Reach reach({field(Rows::window, 10, -3), field(Rows::row, 1, 8), field(Rows::all, 0, 0)});
  EXPECT_EQ(reach.rows(), 12u);
  EXPECT_EQ(range(reach, 20), (std::vector<uint64_t>{3, 11}));
  EXPECT_EQ(range(reach, 12), (std::vector<uint64_t>{3, 3}));
  EXPECT_EQ(range(reach, 11), (std::vector<uint64_t>{}));
}

TEST(Reach, PaddedFieldsReachBeyond) {
  const Reach reach({field(Rows::window, 100, -50, Pad::zeros), field(Rows::row, 1, 0)});
  EXPECT_EQ(range(reach, 5), (std::vector<uint64_t>{0, 4}));
  EXPECT_EQ(range(reach, 0), (std::vector<uint64_t>{}));
}

TEST(Reach, ASampleBeginsAtARowThatIsThere) {
  EXPECT_EQ(range(Reach({field(Rows::window, 2, -5)}), 9), (std::vector<uint64_t>{5, 8}));
  EXPECT_EQ(range(Reach({}), 1), (std::vector<uint64_t>{0, 0}));
}

TEST(Samples, AreNumberedThroughTheSequences) {
  SampleTable windows(Sampling::windows, 4), groups(Sampling::one_per_group, 4);
  EXPECT_EQ(windows.add({7, {100, 120}, {}}, {2, 11}), 3u);
  EXPECT_EQ(windows.add({9, {0, 1}, {}}, {0, 0}), 1u);
  EXPECT_EQ(windows.length(), 4u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(windows.at(i).sequence, 7u);
    EXPECT_EQ(windows.at(i).start, 102 + 4 * i);
    EXPECT_EQ(windows.at(i).rows.end, 120u);
  }
  EXPECT_EQ(windows.at(3).sequence, 9u);
  groups.add({7, {0, 20}, {}}, {2, 11});
  groups.add({9, {0, 1}, {}}, {0, 0});
  EXPECT_EQ(groups.length(), 2u);
  EXPECT_EQ(groups.at(0).start, 6u);
  EXPECT_EQ(groups.at(1).sequence, 9u);
}

}  // namespace
}  // namespace hdf5_source
