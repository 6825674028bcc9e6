#include "report/scale.hpp"

#include <gmock/gmock.h>

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

TEST(Scale, AmountsAsPeopleReadThem) {
  EXPECT_EQ(amount_text(1234567, Quantity::count), "1,234,567");
  EXPECT_EQ(amount_text(-1234, Quantity::count), "-1,234");
  EXPECT_EQ(amount_text(12.0 * (1 << 20), Quantity::bytes), "12.0 MiB");
  EXPECT_EQ(amount_text(0.0125, Quantity::seconds), "12.5 ms");
  EXPECT_EQ(amount_text(130, Quantity::seconds), "2 min 10 s");
  EXPECT_EQ(amount_text(0.12345, Quantity::number), "0.1235");
}

}  // namespace
}  // namespace headroom
