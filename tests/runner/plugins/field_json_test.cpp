#include "plugins/field_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plugins/field_checks.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

std::vector<Field> two_fields() {
  return {{.name = "emg",
           .unit = "V",
           .dtype = {kDLFloat, 32, 1},
           .shape = {500, 2},
           .axes = {"time", "channel"},
           .sample_rate_hz = 2000.0,
           .channel_axis = 1,
           .normalize = true,
           .channels = {{"flexor", "mV", 0.1, 0.3}, {"extensor", "", 1e-300, 2.0}}},
          {.name = "valid", .unit = "", .dtype = {kDLUInt, 8, 1}, .shape = {}, .axes = {}, .channels = {}}};
}

std::string refusal(const nlohmann::json& json) {
  try {
    (void)fields_from_json(json);
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::bad_input);
    return problem.what();
  }
  return "";
}

TEST(FieldJson, ComesBackAsItWas) {
  const std::string text = fields_to_json(two_fields()).dump();
  const std::vector<Field> back = fields_from_json(nlohmann::json::parse(text));
  ASSERT_EQ(back.size(), 2u);
  const Field& emg = back[0];
  EXPECT_EQ(emg.name, "emg");
  EXPECT_EQ(emg.unit, "V");
  EXPECT_EQ(dtype_name(emg.dtype), "float32");
  EXPECT_EQ(emg.shape, (std::vector<int64_t>{500, 2}));
  EXPECT_EQ(emg.axes, (std::vector<std::string>{"time", "channel"}));
  EXPECT_EQ(emg.sample_rate_hz, 2000.0);
  EXPECT_EQ(emg.channel_axis, 1);
  EXPECT_TRUE(emg.normalize);
  ASSERT_EQ(emg.channels.size(), 2u);
  EXPECT_EQ(emg.channels[0].unit, "mV");
  EXPECT_EQ(emg.channels[0].mean, 0.1) << "to the bit";
  EXPECT_EQ(emg.channels[1].mean, 1e-300);
  EXPECT_EQ(back[1].channel_axis, -1);
  EXPECT_TRUE(back[1].shape.empty());
  EXPECT_EQ(fields_to_json(back).dump(), text);
}

TEST(FieldJson, EveryTypeThatAFieldMayHaveComesBack) {
  for (const int code : {kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool}) {
    for (const int bits : {8, 16, 32, 64}) {
      std::vector<Field> fields = {two_fields()[1]};
      fields[0].dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
      std::vector<hr_channel> channels;
      if (!flaw_of_field(fields[0].native(channels), 0).empty()) continue;
      const Field back = fields_from_json(fields_to_json(fields))[0];
      EXPECT_TRUE(sdk::same_type(back.dtype, fields[0].dtype)) << dtype_name(fields[0].dtype);
    }
  }
}

TEST(FieldJson, WhatIsNoFieldIsRefused) {
  nlohmann::json json = fields_to_json(two_fields());
  json[0]["dtype"] = "float31";
  EXPECT_THAT(refusal(json), HasSubstr("'float31' is not a number type that a field may have"));
  json = fields_to_json(two_fields());
  json[0]["shape"] = {500, 2, 7};
  EXPECT_THAT(refusal(json), HasSubstr("'emg' has 3 extents and 2 axes"));
  json = fields_to_json(two_fields());
  json[0]["shape"] = {500, 0};
  EXPECT_THAT(refusal(json), HasSubstr("field 'emg' has 0 elements along axis 1"));
  json = fields_to_json(two_fields());
  json[0]["channel_axis"] = 2;
  EXPECT_THAT(refusal(json), HasSubstr("field 'emg' has channel axis 2 of 2 axes"));
  json = fields_to_json(two_fields());
  json[0]["channels"][0]["std"] = 0.0;
  EXPECT_THAT(refusal(json), HasSubstr("a channel of field 'emg' has no usable mean and std"));
  json = fields_to_json(two_fields());
  json[0]["shape"] = std::vector<int>(9, 1);
  json[0]["axes"] = std::vector<std::string>(9, "");
  EXPECT_THAT(refusal(json), HasSubstr("field 'emg' has 9 axes; 0 to 8 are allowed"));
  EXPECT_THAT(refusal(nlohmann::json::parse("[{}]")), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace headroom
