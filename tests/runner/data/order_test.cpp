// Order: every sample once, another order for another seed or epoch, evenly spread, and the same for ever.

#include "data/order.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace headroom {
namespace {

std::vector<uint64_t> all(const Order& order) {
  std::vector<uint64_t> indices(order.length());
  for (uint64_t i = 0; i < order.length(); ++i) indices[i] = order.at(i);
  return indices;
}

class EveryLength : public testing::TestWithParam<uint64_t> {};

TEST_P(EveryLength, IsAPermutation) {
  const Order order(Shuffle::global, GetParam(), 3, 1);
  std::vector<bool> seen(GetParam(), false);
  for (uint64_t i = 0; i < GetParam(); ++i) {
    const uint64_t index = order.at(i);
    ASSERT_LT(index, GetParam());
    ASSERT_FALSE(seen[index]) << index << " comes twice";
    seen[index] = true;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, EveryLength,
                         testing::Values(0, 1, 2, 3, 4, 5, 100, 255, 256, 257, 1000, 65536, 65537, 300000));

TEST(Order, PositionsAllOverOfALongOrderAreDistinct) {
  constexpr uint64_t length = 5000000;
  const Order order(Shuffle::global, length, 3, 1);
  std::vector<bool> seen(length, false);
  for (uint64_t i = 0; i < length; i += 17) {
    const uint64_t index = order.at(i);
    ASSERT_LT(index, length);
    ASSERT_FALSE(seen[index]) << index << " comes twice";
    seen[index] = true;
  }
}

TEST(Order, SequentialIsTheIdentity) {
  const Order order(Shuffle::sequential, 5, 3, 1);
  EXPECT_EQ(all(order), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

TEST(Order, SeedsAndEpochsDiffer) {
  const auto base = all(Order(Shuffle::global, 1000, 3, 1));
  EXPECT_EQ(base, all(Order(Shuffle::global, 1000, 3, 1)));
  EXPECT_NE(base, all(Order(Shuffle::global, 1000, 3, 2)));
  EXPECT_NE(base, all(Order(Shuffle::global, 1000, 4, 1)));
  EXPECT_NE(all(Order(Shuffle::global, 1000, 1, 3)), all(Order(Shuffle::global, 1000, 3, 1)))
      << "seed and epoch must not be one number";
}

struct Cut {
  uint64_t length, runs, run_length;
};

class EveryGrouping : public testing::TestWithParam<Cut> {};

// Each index once, and each `runs` runs of the cut stay together.
TEST_P(EveryGrouping, IsAnExactPartitionIntoGroupsOfRuns) {
  const auto [length, runs, run_length] = GetParam();
  for (uint64_t epoch = 0; epoch < 40; ++epoch) {  // the short run comes everywhere
    const Order order(Shuffle::grouped, length, 3, epoch, {runs, run_length});
    std::vector<bool> seen(length, false);
    std::set<uint64_t> group, done;
    uint64_t samples = 0, wanted = 0;
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t index = order.at(i);
      ASSERT_LT(index, length);
      ASSERT_FALSE(seen[index]) << index << " comes twice";
      seen[index] = true;
      const uint64_t run = index / run_length;
      ASSERT_FALSE(done.contains(run)) << "run " << run << " was over";
      if (group.insert(run).second) wanted += std::min(run_length, length - run * run_length);
      ASSERT_LE(group.size(), runs);
      if (++samples < wanted || (group.size() < runs && i + 1 < length)) continue;
      ASSERT_EQ(samples, wanted) << "a group ends with all of its runs";
      done.merge(group);
      group.clear();
      samples = wanted = 0;
    }
    EXPECT_EQ(samples, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, EveryGrouping,
                         testing::Values(Cut{0, 4, 8}, Cut{1, 4, 8}, Cut{2, 1, 1}, Cut{7, 2, 8}, Cut{8, 2, 8},
                                         Cut{9, 2, 8}, Cut{33, 4, 8}, Cut{100, 3, 7}, Cut{100, 1, 7}, Cut{100, 100, 1},
                                         Cut{100, 1, 100}, Cut{1000, 7, 30}, Cut{1024, 4, 64}, Cut{3001, 5, 100},
                                         Cut{5000, 1000000, 1000000}));

TEST(Order, GroupedMixesNeighboursOfRunsFromAllOver) {
  constexpr uint64_t length = 100'000, runs = 8, run_length = 500;
  const Order order(Shuffle::grouped, length, 1, 0, {runs, run_length});
  std::set<uint64_t> first_runs, second_runs;
  uint64_t neighbours = 0;
  for (uint64_t i = 0; i < runs * run_length; ++i) {
    first_runs.insert(order.at(i) / run_length);
    second_runs.insert(order.at(i + runs * run_length) / run_length);
    neighbours += order.at(i) + 1 == order.at(i + 1) ? 1 : 0;
  }
  EXPECT_EQ(first_runs.size(), runs);
  EXPECT_EQ(second_runs.size(), runs);
  EXPECT_LT(neighbours, 20u) << "mixed, not run after run";
  EXPECT_GT(*first_runs.rbegin() - *first_runs.begin(), runs) << "the runs are not neighbours";
  const Order next(Shuffle::grouped, length, 1, 1, {runs, run_length});
  std::set<uint64_t> other_runs;
  for (uint64_t i = 0; i < runs * run_length; ++i) other_runs.insert(next.at(i) / run_length);
  EXPECT_NE(other_runs, first_runs) << "another epoch, other company";
}

// A checkpoint resumes by arithmetic: these orders may never change.
TEST(Order, IsTheSameForEver) {
  const auto first = all(Order(Shuffle::global, 10, 0, 0));
  EXPECT_EQ(first, (std::vector<uint64_t>{1, 0, 5, 9, 4, 2, 7, 6, 8, 3}));
  const Order large(Shuffle::global, 5000000000u, 42, 7);
  EXPECT_EQ(large.at(0), 2103649216u);
  EXPECT_EQ(large.at(4999999999u), 2525626194u);
  EXPECT_EQ(all(Order(Shuffle::grouped, 10, 0, 0, {2, 3})), (std::vector<uint64_t>{0, 5, 1, 4, 2, 3, 8, 9, 7, 6}));
  const Order grouped(Shuffle::grouped, 5000000001u, 42, 7, {});
  EXPECT_EQ(grouped.at(0), 57149963u);
  EXPECT_EQ(grouped.at(5000000000u), 370428361u);
}

// Chi-square over epochs; the bounds lie 5 standard deviations above the mean, the draws never change.
TEST(Order, SmallOrdersComeEvenly) {
  constexpr int epochs = 24000;
  std::map<std::vector<uint64_t>, int> seen;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) ++seen[all(Order(Shuffle::global, 4, 9, epoch))];
  ASSERT_EQ(seen.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : seen)
    chi_square += (count - epochs / 24.0) * (count - epochs / 24.0) / (epochs / 24.0);
  EXPECT_LT(chi_square, 23 + 5 * std::sqrt(2 * 23.0));
}

TEST(Order, NeighboursInTheOrderAreStrangersInTheData) {
  constexpr uint64_t length = 1000, epochs = 20000;
  std::vector<double> first(length), distance(length);
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Order order(Shuffle::global, length, 1, epoch);
    const uint64_t a = order.at(0), b = order.at(1);
    first[a] += 1;
    distance[(b + length - a) % length] += 1;
  }
  const auto chi_square = [](const std::vector<double>& counts, double expected) {
    return std::accumulate(counts.begin(), counts.end(), 0.0,
                           [=](double sum, double n) { return sum + (n - expected) * (n - expected) / expected; });
  };
  const double bound = length + 5 * std::sqrt(2.0 * length);
  EXPECT_LT(chi_square(first, static_cast<double>(epochs) / length), bound);
  distance.erase(distance.begin());  // never itself
  EXPECT_LT(chi_square(distance, static_cast<double>(epochs) / (length - 1)), bound);
}

}  // namespace
}  // namespace headroom
