#include "plugins/made_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "error.hpp"
#include "headroom/sdk/inputs.hpp"

namespace headroom {
namespace {

using sdk::any_size;

std::vector<sdk::Input> told;  // by a model

hr_status list_told(const hr_value*, int32_t (*visit)(void*, const hr_input*), void* context,
                    hr_error* error) noexcept {
  return sdk::guard(error, [&] { sdk::detail::visit_inputs(told, visit, context); });
}

std::vector<MadeUpField> made_up(std::vector<sdk::Input> inputs) {
  static const hr_inputs api{sizeof(hr_inputs), 0, list_told};
  told = std::move(inputs);
  return made_up_fields(api, "teller", nullptr);
}

TEST(MadeUp, SizesThatAreOpenAgree) {
  const auto fields = made_up({{.name = "x", .shape = {any_size, 3}, .unit = "V", .sample_rate_hz = 100.0},
                               {.name = "valid", .dtype = sdk::u8, .shape = {any_size}},
                               {.name = "age"}});
  ASSERT_EQ(fields.size(), 3u);
  const Field &x = fields[0].field, &valid = fields[1].field;
  ASSERT_EQ(x.shape.size(), 2u);
  EXPECT_GT(x.shape[0], 1);
  EXPECT_EQ(x.shape[1], 3);
  EXPECT_EQ(valid.shape, std::vector<int64_t>{x.shape[0]});
  EXPECT_EQ(dtype_name(valid.dtype), "uint8");
  EXPECT_EQ(x.unit, "V");
  EXPECT_EQ(x.sample_rate_hz, 100.0);
  EXPECT_THAT(fields[2].field.shape, testing::IsEmpty());
}

std::set<double> values_of(const MadeUpField& field) {
  std::set<double> values;
  for (uint64_t i = 0; i < 200; ++i) values.insert(field.value(7, 1, i));
  return values;
}

TEST(MadeUp, ValuesSuitTypeAndBounds) {
  const auto fields = made_up({{.name = "mask", .dtype = sdk::boolean},
                               {.name = "label", .dtype = sdk::i64},
                               {.name = "token", .dtype = sdk::i32, .min = -1, .max = 2},
                               {.name = "part", .min = 0.25, .max = 0.5},
                               {.name = "free", .dtype = sdk::f64}});
  EXPECT_THAT(values_of(fields[0]), testing::ElementsAre(0, 1));
  EXPECT_THAT(values_of(fields[1]), testing::ElementsAre(0, 1));
  EXPECT_THAT(values_of(fields[2]), testing::ElementsAre(-1, 0, 1, 2));
  EXPECT_THAT(values_of(fields[3]), testing::Each(testing::AllOf(testing::Ge(0.25), testing::Le(0.5))));
  EXPECT_THAT(values_of(fields[4]), testing::SizeIs(200));
  EXPECT_EQ(fields[4].value(7, 1, 3), fields[4].value(7, 1, 3));
  EXPECT_NE(fields[4].value(7, 1, 3), fields[4].value(8, 1, 3));
  EXPECT_NE(fields[4].value(7, 1, 3), fields[4].value(7, 2, 3));
}

TEST(MadeUp, RefusesWhatCannotBe) {
  const std::vector<std::pair<std::vector<sdk::Input>, std::string>> wrong = {
      {{}, "it names no field"},
      {{{.name = ""}}, "its field 0 has no name"},
      {{{.name = "x"}, {.name = "x"}}, "it names field 'x' twice"},
      {{{.name = "x", .shape = {0}}}, "field 'x' has 0 elements along axis 0"},
      {{{.name = "x", .dtype = {kDLFloat, 24, 1}}}, "field 'x' has the unknown dtype float24"},
      {{{.name = "x", .min = 2, .max = 1}}, "the values of field 'x' lie between"},
      {{{.name = "x", .dtype = sdk::u8, .min = 0, .max = 256}}, "where uint8 has none"},
      {{{.name = "x", .dtype = sdk::u8, .min = -1, .max = 1}}, "where uint8 has none"},
      {{{.name = "x", .dtype = sdk::i64, .min = 0.2, .max = 0.8}}, "where int64 has none"}};
  for (const auto& one : wrong) {
    EXPECT_THAT([&] { made_up(one.first); }, testing::ThrowsMessage<Error>(testing::HasSubstr(one.second)));
  }
}

}  // namespace
}  // namespace headroom
