// The C++ SDK against the host: options of every type, fields, groups, reads, and exceptions that become statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "error.hpp"
#include "headroom/datasource.hpp"
#include "headroom/sdk/fields.hpp"
#include "plugins/describe.hpp"
#include "plugins/source.hpp"

namespace headroom {
namespace {

Library library() { return Library::load(HEADROOM_TEST_PLUGIN_DIR "/every_type.so"); }

OptionValues values(const std::string& toml) {
  const toml::table table = toml::parse(toml);
  return check_options(to_option_table(library().datasource()->options), &table, "data.options", "every_type");
}

std::string text_of(const Source& source, uint32_t split = 0) {
  std::string text(static_cast<std::size_t>(source.fields()[0].bytes()), ' ');
  int64_t shape[] = {1, source.fields()[0].shape[0]};
  const DLTensor slot{text.data(), {kDLCPU, 0}, 2, source.fields()[0].dtype, shape, nullptr, 0};
  const uint64_t index[] = {0}, key[] = {0};
  source.reader().read(split, index, key, false, {&slot, 1});
  return text;
}

TEST(Options, DefaultsOfEveryType) {
  EXPECT_EQ(text_of(*Source::open(library(), values(""))),
            "true 7 2.000000 plain 1024 somewhere t f 1 2 3 0.500000 a b absent");
}

TEST(Options, ValuesOfEveryType) {
  const std::string file = R"(
    flag = false
    count = 9
    rate = 0.25
    word = "other \"word\""
    room = "2 MiB"
    place = "/tmp/there"
    flags = []
    counts = [-5]
    rates = [1, 2.5]
    words = ["c"]
    places = ["/x/p1", "/x/p2"]
    inner = { depth = 4 }
    stages = [{ name = "s", size = 2 }, { name = "t" }]
    absent = 0
  )";
  EXPECT_EQ(text_of(*Source::open(library(), values(file))),
            "false 9 0.250000 other \"word\" 2097152 there -5 1.000000 2.500000 c p1 p2 inner:4 s=2 t=1 present");
}

TEST(Options, BoundsAreTheTables) {
  EXPECT_THROW(values("count = 10"), Error);
  EXPECT_THROW(values("room = \"2 GiB\""), Error);
  EXPECT_THROW(values("words = [\"d\"]"), Error);
  EXPECT_THROW(values("stages = [{ size = 2 }]"), Error);
}

TEST(Options, TablesSurviveJson) {
  const nlohmann::json description = describe_plugin(library());
  EXPECT_EQ(description.at("id"), "every_type");
  EXPECT_EQ(description.at("version"), "2.1");
  EXPECT_EQ(description.at("torch_tag"), nullptr);
  EXPECT_EQ(description.at("note"), true);
  ASSERT_EQ(description.at("interfaces").size(), 1u);
  const OptionTable table = option_table_from_json(description.at("interfaces").at(HR_DATASOURCE).at("options"));
  ASSERT_EQ(table.size(), 14u);
  EXPECT_EQ(table[12].table[0].name, "name");
  EXPECT_TRUE(table[12].table[0].required);
  EXPECT_EQ(table[2].default_value, "2");
  EXPECT_EQ(table[3].default_value, "\"plain\"");
}

TEST(SourceOfTheSdk, DescribesItself) {
  const auto source = Source::open(library(), values(""));
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
  EXPECT_EQ(source->length(0), 6u);
  EXPECT_EQ(source->length(1), 2u);
  ASSERT_EQ(source->groups(0).size(), 2u);
  EXPECT_EQ(source->groups(0)[1].name, "b");
  EXPECT_EQ(source->groups(0)[1].first, 4u);
  EXPECT_EQ(source->cost(0, 3), 4.0);
  EXPECT_EQ(source->files(), (std::vector<std::filesystem::path>{"one.h5", "two.h5"}));
}

// groups() without the split.
template <int splits_of>
struct OneGrouping {
  explicit OneGrouping(const sdk::Options&) {}
  std::vector<sdk::Field> fields() const { return {{.name = "x", .shape = {1}}}; }
  std::vector<std::string> splits() const {
    return splits_of == 1 ? std::vector<std::string>{"all"} : std::vector<std::string>{"train", "val"};
  }
  uint64_t length() const { return 5; }
  std::vector<sdk::Group> groups() const { return {{"a", 0, 2}, {"b", 2, 3}}; }
  void read(const sdk::ReadRequest&) const {}
};

template <class T>
std::shared_ptr<const Source> opened() {
  return Source::open(*static_cast<const hr_datasource*>(sdk::datasource<T>().find(HR_DATASOURCE)), "grouped", nullptr);
}

TEST(SourceOfTheSdk, GroupsWithoutAnArgumentAreThoseOfTheOneSplit) {
  const auto source = opened<OneGrouping<1>>();
  ASSERT_EQ(source->groups(0).size(), 2u);
  EXPECT_EQ(source->groups(0)[1].name, "b");
  EXPECT_EQ(source->groups(0)[1].first, 2u);
  EXPECT_THAT(
      [] { opened<OneGrouping<2>>(); },
      testing::ThrowsMessage<Error>(testing::HasSubstr("groups() of a source with several splits takes the split")));
}

// Of a field of six elements.
template <uint64_t rows>
struct Positioned {
  explicit Positioned(const sdk::Options&) {}
  std::vector<sdk::Field> fields() const { return {{.name = "x", .shape = {6}}, {.name = "y", .shape = {6}}}; }
  uint64_t length() const { return 5; }
  std::optional<sdk::Position> position(uint32_t field, uint32_t, uint64_t index) const {
    if (field == 1) return std::nullopt;
    return sdk::Position{static_cast<int64_t>(index) - 1, rows, 9};
  }
  void read(const sdk::ReadRequest&) const {}
};

template <uint64_t rows>
std::optional<RecordedRows> rows_of_sample(uint32_t field, uint64_t index) {
  static const auto interface = sdk::datasource<Positioned<rows>>();
  const auto source =
      Source::open(*static_cast<const hr_datasource*>(interface.find(HR_DATASOURCE)), "positioned", nullptr, nullptr,
                   Session::of_process(), nullptr, static_cast<const hr_positions*>(interface.find(HR_POSITIONS)));
  return source->recorded_rows(field, 0, index);
}

TEST(SourceOfTheSdk, SaysWhichRowsASampleShows) {
  const auto found = rows_of_sample<3>(0, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, 3);
  EXPECT_EQ(found->rows, 3u);
  EXPECT_EQ(found->length, 9u);
  EXPECT_EQ(rows_of_sample<3>(0, 0)->first, -1);
  EXPECT_FALSE(rows_of_sample<3>(1, 4));
  EXPECT_EQ(sdk::datasource<OneGrouping<1>>().find(HR_POSITIONS), nullptr);
  EXPECT_FALSE(opened<OneGrouping<1>>()->recorded_rows(0, 0, 0));
  EXPECT_THAT([] { rows_of_sample<4>(0, 4); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  "sample 4 of field 'x' shows 4 rows, which its 6 elements cannot be divided into")));
}

// From the source's object over the C table to the host, and from there to a model.
TEST(SourceOfTheSdk, ChannelsAreToldOn) {
  const auto source = Source::open(library(), values(""));
  const Field& text = source->fields().front();
  ASSERT_EQ(text.channels.size(), static_cast<size_t>(text.shape[0]));
  std::vector<hr_channel> native_channels;
  const hr_field native = text.native(native_channels);
  const sdk::Fields given(&native, 1);
  ASSERT_EQ(given.at("text").channels.size(), text.channels.size());
  const sdk::Channel &first = given.at("text").channels[0], &second = given.at("text").channels[1];
  EXPECT_EQ(first.name, "letter 0");
  EXPECT_EQ(first.unit, "rad");
  EXPECT_EQ(second.unit, "");
  EXPECT_EQ(second.mean, 0.5);
  EXPECT_EQ(second.std, 2.0);
}

TEST(SourceOfTheSdk, BadSampleIsOne) {
  const auto source = Source::open(library(), values(""));
  const DLTensor slot{nullptr, {kDLCPU, 0}, 2, source->fields()[0].dtype, nullptr, nullptr, 0};
  const uint64_t index[] = {5}, key[] = {0};
  try {
    source->reader().read(0, index, key, false, {&slot, 1});
    FAIL();
  } catch (const BadSample& problem) {
    EXPECT_STREQ(problem.what(), "[every_type] sample 5 is damaged");
    EXPECT_EQ(problem.exit_code(), Exit::data);
  }
}

TEST(SourceOfTheSdk, WrongTypeOfSlotIsRefused) {
  const auto source = Source::open(library(), values(""));
  float data[64];
  int64_t shape[] = {1, 64};
  const DLTensor slot{data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const uint64_t index[] = {0}, key[] = {0};
  EXPECT_THAT(
      [&] {
        source->reader().read(0, index, key, false, {&slot, 1});
      },
      testing::ThrowsMessage<Error>(
          "[every_type] reading samples failed: the plugin fills a field with another type than it declared"));
}

struct Misbehaviour {
  std::string word;
  Exit exit;
  std::string sentence;
};

void PrintTo(const Misbehaviour& one, std::ostream* out) { *out << one.word; }

class Guard : public testing::TestWithParam<Misbehaviour> {};

TEST_P(Guard, ExceptionsBecomeSentences) {
  const OptionValues given = values("word = \"" + GetParam().word + "\"");
  try {
    Source::open(library(), given);
    FAIL();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.what(), "[every_type] " + GetParam().sentence);
    EXPECT_EQ(problem.exit_code(), GetParam().exit);
  }
}

TEST_P(Guard, NobodyNeedAskForTheError) {
  const hr_datasource* api = library().datasource();
  const NativeOptions native(to_option_table(api->options), values("word = \"" + GetParam().word + "\""));
  hr_source* source = nullptr;
  EXPECT_NE(api->open(library().host(), native.values(), &source, nullptr), HR_OK);
  EXPECT_EQ(source, nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Everything, Guard,
    testing::Values(Misbehaviour{"invalid", Exit::bad_input, "word is wrong: use another"},
                    Misbehaviour{"bad_alloc", Exit::does_not_fit, "opening the data source failed: out of memory"},
                    Misbehaviour{"runtime_error", Exit::plugin, "opening the data source failed: something broke"},
                    Misbehaviour{"int", Exit::plugin,
                                 "opening the data source failed: an exception that is not a std::exception"},
                    Misbehaviour{"long", Exit::data, std::string(503, 'y')},
                    Misbehaviour{"utf8", Exit::data, std::string(502, 'y')},  // never half a character
                    Misbehaviour{"unknown_option", Exit::plugin,
                                 "opening the data source failed: the plugin asks for an option 'no_such_key' that its "
                                 "own table does not declare"},
                    Misbehaviour{"wrong_type", Exit::plugin,
                                 "opening the data source failed: the plugin reads its option 'count' as another type"},
                    Misbehaviour{"absent_option", Exit::plugin,
                                 "opening the data source failed: the plugin reads its option 'absent', which is not "
                                 "set and has no default"}),
    [](const auto& one) { return one.param.word; });

}  // namespace
}  // namespace headroom
