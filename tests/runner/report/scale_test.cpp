#include "report/scale.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <set>

namespace headroom {
namespace {

using testing::ElementsAre;

std::vector<std::string> labels(const Scale& scale) {
  std::vector<std::string> labels;
  for (const Tick& tick : scale.ticks()) labels.push_back(tick.label);
  return labels;
}

TEST(Scale, TicksAreRound) {
  EXPECT_THAT(labels(Scale::rounded(0.0, 0.93, Quantity::number)),
              ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(labels(Scale::rounded(10.2, 10.9, Quantity::number)),
              ElementsAre("10.2", "10.4", "10.6", "10.8", "11.0"));
  EXPECT_THAT(labels(Scale::exact(0, 12000, Quantity::count)), ElementsAre("0", "2k", "4k", "6k", "8k", "10k", "12k"));
  EXPECT_THAT(labels(Scale::exact(0, 3, Quantity::count)), ElementsAre("0", "1", "2", "3"));
}

TEST(Scale, BytesAreInBinaryUnitsAndTimeAsOnAClock) {
  EXPECT_THAT(labels(Scale::rounded(0, 420.0 * (1 << 20), Quantity::bytes)),
              ElementsAre("0", "100 MiB", "200 MiB", "300 MiB", "400 MiB", "500 MiB"));
  EXPECT_THAT(labels(Scale::exact(0, 3700, Quantity::seconds)), ElementsAre("0", "20 min", "40 min", "60 min"));
  EXPECT_THAT(labels(Scale::exact(0, 100000, Quantity::seconds)), ElementsAre("0", "6 h", "12 h", "18 h", "24 h"));
}

TEST(Scale, PlacesAndTicksOfALogarithm) {
  const Scale scale = Scale::fitting(0.001, 10, Quantity::number);
  ASSERT_TRUE(scale.is_logarithmic());
  EXPECT_THAT(labels(scale), ElementsAre("0.001", "0.01", "0.1", "1", "10"));
  EXPECT_NEAR(scale.place(0.1), 0.5, 1e-12);
  EXPECT_FALSE(Scale::fitting(1, 10, Quantity::number).is_logarithmic());
  EXPECT_FALSE(Scale::fitting(-1, 1000, Quantity::number).is_logarithmic());
}

TEST(Scale, OneValueHasAPlaceToo) {
  for (const double value : {0.0, 5e-4, -3.0, 1e12}) {
    const Scale scale = Scale::rounded(value, value, Quantity::number);
    EXPECT_GE(scale.place(value), 0) << value;
    EXPECT_LE(scale.place(value), 1) << value;
    EXPECT_GE(scale.ticks().size(), 2u) << value;
  }
}

// A plateau, losses that ran away or died out, and large values near each other.
TEST(Scale, TicksHaveLabelsOfTheirOwnAtPlacesThatAreNumbers) {
  using Ends = std::pair<double, double>;
  for (const auto& [lowest, highest] : {Ends{0.5, 0.5 + 1e-12},
                                        {0.5, 0.5 + 1e-6},
                                        {101'230, 101'260},
                                        {1234567, 1234568},
                                        {-1e308, 1e308},
                                        {1.7e308, 1.7e308},
                                        {5e-324, 5e-324},
                                        {1e-320, 1},
                                        {1e9, 1e9 + 1}}) {
    for (const Scale& scale :
         {Scale::rounded(lowest, highest, Quantity::number), Scale::fitting(lowest, highest, Quantity::number)}) {
      std::set<std::string> different;
      for (const Tick& tick : scale.ticks()) {
        EXPECT_TRUE(different.insert(tick.label).second) << lowest << " to " << highest << ": " << tick.label;
        EXPECT_TRUE(std::isfinite(tick.place)) << lowest << " to " << highest;
      }
      EXPECT_TRUE(std::isfinite(scale.place(highest))) << highest;
      EXPECT_GE(different.size(), 2u);
      EXPECT_LE(different.size(), 10u);
    }
  }
}

TEST(Scale, AmountsAsPeopleReadThem) {
  EXPECT_EQ(amount_text(1234567, Quantity::count), "1,234,567");
  EXPECT_EQ(amount_text(-1234, Quantity::count), "-1,234");
  EXPECT_EQ(amount_text(12.0 * (1 << 20), Quantity::bytes), "12.0 MiB");
  EXPECT_EQ(amount_text(0.0125, Quantity::seconds), "12.5 ms");
  EXPECT_EQ(amount_text(130, Quantity::seconds), "2 min 10 s");
  EXPECT_EQ(amount_text(0.12345, Quantity::number), "0.1235");
  EXPECT_EQ(amount_text(1e100, Quantity::count), "1e+100");
  EXPECT_EQ(amount_text(1e300, Quantity::seconds), "1e+300 s");
}

}  // namespace
}  // namespace headroom
