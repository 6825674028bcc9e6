#include "report/decimated.hpp"

#include <gtest/gtest.h>

namespace headroom {
namespace {

Extremes all_of(const Decimated<Extremes>& series) {
  Extremes all = series.entries().front().cell;
  for (size_t i = 1; i < series.entries().size(); ++i) all.absorb(series.entries()[i].cell);
  return all;
}

TEST(Decimated, KeepsShortSeriesAsTheyAre) {
  Decimated<Extremes> series(100);
  for (int i = 0; i < 200; ++i) series.add(i, Extremes::of(i, -i));
  ASSERT_EQ(series.entries().size(), 200u);
  EXPECT_EQ(series.entries()[17].cell.last, -17);
}

TEST(Decimated, StaysSmallAndLosesNoExtreme) {
  Decimated<Extremes> series(100);
  const int64_t count = 1'000'000;
  for (int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    series.add(x, Extremes::of(x, i == 123'456 ? 1e6 : i == 654'321 ? -1e6 : 0.0));
    ASSERT_LE(series.entries().size(), 200u);
  }
  EXPECT_GE(series.entries().size(), 100u);
  const Extremes all = all_of(series);
  EXPECT_EQ(all.count, count);
  EXPECT_EQ(all.highest_x, 123'456);
  EXPECT_EQ(all.lowest_x, 654'321);
  EXPECT_EQ(all.last_x, static_cast<double>(count - 1));
}

TEST(Decimated, StaysSmallWhereverTheValuesLie) {
  Decimated<Extremes> same(10), growing(10), falling(10);
  for (int i = 0; i < 10'000; ++i) {
    same.add(7, Extremes::of(7, i));
    growing.add(std::pow(1.001, i), Extremes::of(i, i));
    falling.add(-i, Extremes::of(-i, i));
  }
  for (const auto* series : {&same, &growing, &falling}) {
    EXPECT_LE(series->entries().size(), 20u);
    EXPECT_EQ(all_of(*series).count, 10'000);
  }
}

}  // namespace
}  // namespace headroom
