#include "data/field_statistics.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom {
namespace {

Field field(int channel_axis, std::vector<Channel> channels) {
  return {.name = "x",
          .unit = "V",
          .dtype = {kDLFloat, 32, 1},
          .shape = {5, 2},
          .axes = {"", ""},
          .channel_axis = channel_axis,
          .normalize = true,
          .channels = std::move(channels)};
}

std::vector<FieldStatistics> statistics(const char* text) { return statistics_from_json(nlohmann::json::parse(text)); }

// What the source does to a measured value, and the host after it, taken back in one step.
TEST(Measured, SourceAndHostTogether) {
  const Field x = field(1, {{"a", "V", 10.0, 2.0}, {"b", "V", 20.0, 4.0}});
  const std::vector<FieldStatistics> host =
      statistics(R"([{"field": "x", "mean": [0.5, -1], "std": [3, 5], "samples": 1}])");
  const auto channels = measured_channels(x, host, 1);
  ASSERT_EQ(channels.size(), 2u);
  for (size_t c = 0; c < 2; ++c) {
    const double measured = 17.0;
    const double by_source = (measured - x.channels[c].mean) / x.channels[c].std;
    const double seen = (by_source - host[0].mean[c]) / host[0].std[c];
    EXPECT_NEAR(seen * channels[c].std + channels[c].mean, measured, 1e-12);
  }
  EXPECT_EQ(channels[1].name, "b");
}

TEST(Measured, WithoutChannelsOneStatisticIsOfAll) {
  const std::vector<FieldStatistics> host = statistics(R"([{"field": "x", "mean": [0.5], "std": [3], "samples": 1}])");
  ASSERT_EQ(measured_channels(field(-1, {}), host, -1).size(), 1u);
  const auto spread = measured_channels(field(-1, {}), host, 1);
  ASSERT_EQ(spread.size(), 2u);
  EXPECT_EQ(spread[1].mean, 0.5);
  EXPECT_EQ(spread[1].std, 3.0);
  EXPECT_EQ(measured_channels(field(1, {}), {}, 1)[1].std, 1.0);
  EXPECT_EQ(beside_batch(field(-1, {})), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(beside_batch(field(1, {})), (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(beside_batch(field(0, {})), (std::vector<int64_t>{1, 5, 1}));
}

TEST(Measured, AFieldThatIsStandardisedIsDeliveredWithoutItsUnit) {
  const std::vector<Field> fields = {field(1, {{"a", "mV", 0, 1}, {"b", "mV", 0, 1}})};
  const auto standardised = delivered_fields(fields, true);
  EXPECT_EQ(standardised[0].unit, "");
  EXPECT_EQ(standardised[0].channels[0].unit, "");
  EXPECT_TRUE(standardised[0].normalize);
  const auto as_it_is = delivered_fields(fields, false);
  EXPECT_EQ(as_it_is[0].unit, "V");
  EXPECT_FALSE(as_it_is[0].normalize);
}

}  // namespace
}  // namespace headroom
