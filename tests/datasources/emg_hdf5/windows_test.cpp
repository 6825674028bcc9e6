#include "emg_hdf5/windows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace emg_hdf5 {
namespace {

std::vector<Block> blocks(const std::vector<uint8_t>& valid, uint64_t window_size, std::size_t portion = 1000) {
  BlockScanner scanner(window_size);
  for (std::size_t i = 0; i < valid.size(); i += portion) {
    scanner.add(std::span(valid).subspan(i, std::min(portion, valid.size() - i)));
  }
  return scanner.finish();
}

std::vector<uint8_t> runs(const std::vector<std::size_t>& lengths) {
  std::vector<uint8_t> valid;
  for (std::size_t i = 0; i < lengths.size(); ++i) valid.insert(valid.end(), lengths[i], i % 2 == 0 ? 1 : 0);
  return valid;
}

TEST(WindowCount, IsZeroWhereNoneFits) {
  EXPECT_EQ(window_count({0, 9}, {.size = 10}), 0u);
  EXPECT_EQ(window_count({0, 0}, {.size = 10}), 0u);
  EXPECT_EQ(window_count({5, 15}, {.size = 10, .stride = 7}), 1u);
}

// C++ would divide -1 by 400 to 0 and count one window too many.
TEST(WindowCount, RoundsTowardsMinusInfinity) {
  EXPECT_EQ(window_count({863, 1262}, {.size = 400, .stride = 400}), 0u);
}

TEST(WindowCount, CountsEveryStride) {
  EXPECT_EQ(window_count({0, 12}, {.size = 10, .stride = 1}), 3u);
  EXPECT_EQ(window_count({0, 5000}, {.size = 400, .stride = 150}), 31u);
}

TEST(BlockScanner, LosesTwoSamplesOfEveryRunAndRunsOfOneWindow) {
  EXPECT_THAT(blocks(runs({10, 3, 11, 1, 12}), 10), testing::ElementsAre(Block{13, 22}, Block{25, 35}));
}

TEST(BlockScanner, DoesNotDependOnPortions) {
  const auto valid = runs({30, 1, 11, 2, 40, 5});
  for (const std::size_t portion : {1, 7, 30, 31, 89})
    EXPECT_EQ(blocks(valid, 10, portion), blocks(valid, 10)) << portion;
}

TEST(BlockScanner, FindsNothingInNothing) {
  EXPECT_THAT(blocks({}, 10), testing::IsEmpty());
  EXPECT_THAT(blocks(std::vector<uint8_t>(50, 0), 10), testing::IsEmpty());
}

TEST(WindowTable, NumbersWindowsThroughBlocksAndRecordings) {
  WindowTable table({.size = 10, .stride = 5});
  EXPECT_EQ(table.add(0, {100, 121}), 3u);
  EXPECT_EQ(table.add(0, {200, 209}), 0u);
  EXPECT_EQ(table.add(7, {3, 13}), 1u);
  ASSERT_EQ(table.length(), 4u);
  const uint64_t starts[] = {100, 105, 110, 3}, ends[] = {121, 121, 121, 13};
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.at(i).start, starts[i]);
    EXPECT_EQ(table.at(i).block_end, ends[i]);
    EXPECT_EQ(table.at(i).recording, i < 3 ? 0u : 7u);
  }
}

TEST(WindowTable, BoundsJitterByStrideAndByWhatTheBlockHasLeft) {
  const WindowShape shape{.size = 10, .stride = 5};
  EXPECT_EQ((Window{0, 100, 121}).jitter_bound(shape), 5u);
  EXPECT_EQ((Window{0, 108, 121}).jitter_bound(shape), 3u);
  EXPECT_EQ((Window{0, 111, 121}).jitter_bound(shape), 0u);
}

TEST(SliceOf, ClipsContextAtTheRecordingsEnds) {
  const WindowShape shape{.size = 10, .left = 4, .right = 3};
  const auto expect = [&](uint64_t start, uint64_t begin, uint64_t end, uint64_t position) {
    const Slice slice = slice_of(start, shape, 40);
    EXPECT_EQ(slice.begin, begin);
    EXPECT_EQ(slice.end, end);
    EXPECT_EQ(slice.position, position);
  };
  expect(0, 0, 13, 4);
  expect(3, 0, 16, 1);
  expect(20, 16, 33, 0);
  expect(30, 26, 40, 0);
}

}  // namespace
}  // namespace emg_hdf5
