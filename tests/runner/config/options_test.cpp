// Plugin options: every type, every refusal, and the two ways they travel (TOML, JSON).
#include "config/options.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "config/sweep.hpp"
#include "files.hpp"

namespace headroom {

namespace {

OptionSpec option(std::string name, OptionType type) {
  OptionSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.help = "what " + spec.name + " does";
  return spec;
}

OptionSpec list_of(std::string name, OptionType type) {
  OptionSpec spec = option(std::move(name), type);
  spec.is_list = true;
  return spec;
}

OptionTable every_type() {
  OptionTable inner = {option("channels", OptionType::i64), option("norm", OptionType::string)};
  inner[0].required = true;
  inner[0].min = "1";
  inner[1].choices = {"layer", "none"};
  inner[1].default_value = "\"layer\"";
  OptionTable table = {option("flag", OptionType::boolean),  option("count", OptionType::i64),
                       option("rate", OptionType::f64),      option("word", OptionType::string),
                       option("room", OptionType::bytes),    option("where", OptionType::path),
                       option("stage", OptionType::table),   list_of("flags", OptionType::boolean),
                       list_of("counts", OptionType::i64),   list_of("rates", OptionType::f64),
                       list_of("words", OptionType::string), list_of("rooms", OptionType::bytes),
                       list_of("wheres", OptionType::path),  list_of("stages", OptionType::table),
                       option("any", OptionType::open_table)};
  table[1].min = "0";
  table[1].max = "100";
  table[2].min = "0.0";
  table[3].choices = {"lstm", "mlp"};
  table[4].min = "\"1 KiB\"";
  table[6].table = table[13].table = inner;
  table[8].min = "1";
  table[10].choices = {"a", "b"};
  return table;
}

constexpr const char* every_value = R"(
flag = true
count = 7
rate = 2
word = "mlp"
room = "64 MiB"
where = "data/emg"
stage = { channels = 3 }
flags = [true, false]
counts = [1, 2]
rates = [1, 2.5]
words = ["b", "a"]
rooms = [10, "1 KB"]
wheres = ["a", "/b"]
stages = [{ channels = 1 }, { channels = 2, norm = "none" }]
any = { width = 64, name = "a \"b\"", rate = 1.0, deep = { on = true }, sizes = [1, 2] }
)";

// The options table as an experiment file in `folder` holds it, at line 5 and below.
toml::table table_in(const TemporaryFolder& folder, const std::string& text) {
  return std::move(load_experiment(folder.write("x.toml", required_keys + "[model.options]\n" + text)).model_options);
}

OptionValues check(const OptionTable& spec, const toml::table& table) {
  return check_options(spec, &table, "model.options", "model 'net'");
}

std::string refused(const OptionTable& spec, const std::string& text) {
  const TemporaryFolder folder;
  const toml::table table = table_in(folder, text);
  return replaced(refusal([&] { check(spec, table); }), folder.path().string() + "/", "");
}

template <class T>
T get(const OptionValues& values, size_t i) {
  return std::get<T>(values.at(i).value);
}

TEST(Options, EveryTypeArrivesTyped) {
  const TemporaryFolder folder;
  const OptionValues v = check(every_type(), table_in(folder, every_value));
  EXPECT_EQ(get<bool>(v, 0), true);
  EXPECT_EQ(get<int64_t>(v, 1), 7);
  EXPECT_EQ(get<double>(v, 2), 2.0);
  EXPECT_EQ(get<std::string>(v, 3), "mlp");
  EXPECT_EQ(get<int64_t>(v, 4), 64 << 20);
  EXPECT_EQ(get<std::string>(v, 5), (folder.path() / "data/emg").string());
  const auto stage = get<OptionValues>(v, 6);
  EXPECT_EQ(get<int64_t>(stage, 0), 3);
  EXPECT_EQ(get<std::string>(stage, 1), "layer");
  EXPECT_EQ(get<std::vector<bool>>(v, 7), (std::vector<bool>{true, false}));
  EXPECT_EQ(get<std::vector<int64_t>>(v, 8), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(get<std::vector<double>>(v, 9), (std::vector<double>{1.0, 2.5}));
  EXPECT_EQ(get<std::vector<std::string>>(v, 10), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(get<std::vector<int64_t>>(v, 11), (std::vector<int64_t>{10, 1000}));
  EXPECT_EQ(get<std::vector<std::string>>(v, 12), (std::vector<std::string>{(folder.path() / "a").string(), "/b"}));
  const auto stages = get<std::vector<OptionValues>>(v, 13);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(get<std::string>(stages[0], 1), "layer");
  EXPECT_EQ(get<std::string>(stages[1], 1), "none");
  EXPECT_EQ(get<std::string>(v, 14), R"({"deep":{"on":true},"name":"a \"b\"","rate":1.0,"sizes":[1,2],"width":64})");
}

TEST(Options, ATableWithAnyKeysHoldsWhatJsonHolds) {
  EXPECT_EQ(refused(every_type(), "any = {}\n"), "accepted");
  EXPECT_NE(refused(every_type(), "any = 3\n").find("any is the integer 3; it must be a table"), std::string::npos);
  EXPECT_NE(refused(every_type(), "any = { deep = { rate = inf } }\n").find("any.deep.rate is "), std::string::npos);
  EXPECT_NE(refused(every_type(), "any = { list = [1979-05-27] }\n").find("any.list[0] is "), std::string::npos);
}

TEST(Options, AbsentStaysAbsentAndDefaultsFillIn) {
  OptionTable spec = every_type();
  spec[1].default_value = "12";
  spec[13].default_value = "[{channels = 5}]";
  spec[12].default_value = "[]";
  const OptionValues v = check_options(spec, nullptr, "model.options", "model 'net'");
  ASSERT_EQ(v.size(), spec.size());
  EXPECT_FALSE(v[0].present());
  EXPECT_FALSE(v[6].present());
  EXPECT_EQ(get<int64_t>(v, 1), 12);
  EXPECT_TRUE(get<std::vector<std::string>>(v, 12).empty());
  EXPECT_EQ(get<std::string>(get<std::vector<OptionValues>>(v, 13)[0], 1), "layer");
}

struct Refusal {
  const char* text;
  const char* sentence;
};

TEST(Options, AreRefusedWithThesePlacesAndWords) {
  const Refusal cases[] = {
      {"flag = 1", "5:8: model.options.flag is the integer 1; it must be true or false"},
      {"flag = \"true\"",
       "5:8: model.options.flag is the string \"true\"; it must be true or false: write true without quotes"},
      {"count = 1.0", "5:9: model.options.count is the number 1.0; it must be an integer from 0 to 100: write 1"},
      {"count = \"5\"",
       "5:9: model.options.count is the string \"5\"; it must be an integer from 0 to 100: write 5 without quotes"},
      {"count = 101", "5:9: model.options.count is the integer 101; it must be an integer from 0 to 100"},
      {"count = [1]", "5:9: model.options.count is the list [1]; it must be an integer from 0 to 100"},
      {"rate = -0.5", "5:8: model.options.rate is the number -0.5; it must be a number of at least 0.0"},
      {"rate = nan", "5:8: model.options.rate is the number nan; it must be a number of at least 0.0"},
      {"rate = \"fast\"", "5:8: model.options.rate is the string \"fast\"; it must be a number of at least 0.0"},
      {"word = \"lstn\"",
       "5:8: model.options.word is the string \"lstn\"; it must be \"lstm\" or \"mlp\": did you mean \"lstm\"?"},
      {"word = 3",
       "5:8: model.options.word is the integer 3; it must be \"lstm\" or \"mlp\": write it in quotes, \"3\""},
      {"room = \"big\"",
       "5:8: model.options.room is the string \"big\"; it must be a size such as \"64 MiB\" or a number of bytes of at "
       "least \"1 KiB\""},
      {"room = 1023",
       "5:8: model.options.room is the integer 1023; it must be a size such as \"64 MiB\" or a number of bytes of at "
       "least \"1 KiB\""},
      {"where = 5", "5:9: model.options.where is the integer 5; it must be a path: write it in quotes, \"5\""},
      {"where = \"a\\u0000b\"", "5:9: model.options.where is the string \"a\\u0000b\"; it must be a path"},
      {"stage = 5", "5:9: model.options.stage is the integer 5; it must be a table with channels or norm"},
      {"stage = { }",
       "5:9: model.options.stage.channels is missing; model 'net' needs it: add channels = ..., an integer of at least "
       "1"},
      {"stage = { channels = 0 }",
       "5:22: model.options.stage.channels is the integer 0; it must be an integer of at least 1"},
      {"flags = [true, 1]", "5:16: model.options.flags[1] is the integer 1; it must be true or false"},
      {"counts = 4",
       "5:10: model.options.counts is the integer 4; it must be a list of integers of at least 1: write [4]"},
      {"counts = [4, 0]", "5:14: model.options.counts[1] is the integer 0; it must be an integer of at least 1"},
      {"words = [\"a\", \"c\"]", "5:15: model.options.words[1] is the string \"c\"; it must be \"a\" or \"b\""},
      {"stages = { channels = 1 }",
       "5:10: model.options.stages is a table; it must be a list of tables with channels or norm"},
      {"stages = [{ channels = 1 },\n 5]",
       "6:2: model.options.stages[1] is the integer 5; it must be a table with channels or norm"},
      {"stages = [{ channels = 1 },\n { chanels = 2 }]",
       "6:4: unknown option model.options.stages[1].chanels of model 'net'; did you mean channels (an integer of at "
       "least 1)?"},
      {"cuont = 5",
       "5:1: unknown option model.options.cuont of model 'net'; did you mean count (an integer from 0 to 100)?"},
      {"num_workers = 5",
       "5:1: unknown option model.options.num_workers of model 'net'; did you mean data.num_workers (an integer from 0 "
       "to 1024)?"},
      {"zzzzzzzzzz = 5",
       "5:1: unknown option model.options.zzzzzzzzzz of model 'net'; its options are flag, count, rate, word, room, "
       "where, "
       "stage, flags, counts, rates, words, rooms, wheres, stages or any"},
  };
  for (const Refusal& c : cases)
    EXPECT_EQ(refused(every_type(), std::string(c.text) + "\n"), std::string("[config] x.toml:") + c.sentence);
}

TEST(Options, APluginWithoutOptionsTakesNone) {
  EXPECT_EQ(refused({}, "zzzzzzzz = 1\n"),
            "[config] x.toml:5:1: unknown option model.options.zzzzzzzz of model 'net'; it has no options");
}

TEST(Options, WhatIsMissingIsMissedWhereItsTableStands) {
  OptionTable spec = every_type();
  spec[5].required = true;
  EXPECT_EQ(refused(spec, "count = 1\n"),
            "[config] x.toml:4:1: model.options.where is missing; model 'net' needs it: add where = ..., a path");
  const TemporaryFolder folder;
  const Experiment without = load_experiment(
      folder.write("x.toml", "experiment.name = \"x\"\ndata.source = \"s\"\n\n[model]\nplugin = \"m\"\n"));
  EXPECT_EQ(replaced(refusal([&] { check(spec, without.model_options); }), folder.path().string() + "/", ""),
            "[config] x.toml:4:1: model.options.where is missing; model 'net' needs it: add where = ..., a path");
}

TEST(Options, PathsAreRelativeToTheFileThatSetsThem) {
  const TemporaryFolder folder;
  folder.write("base/base.toml", required_keys + "[model.options]\nwhere = \"../data\"\nwheres = [\"x\"]\n");
  const auto file = folder.write("top.toml", "extends = \"base/base.toml\"\nmodel.options.count = 3\n");
  const OptionValues v = check(every_type(), load_experiment(file).model_options);
  EXPECT_EQ(get<std::string>(v, 5), (folder.path() / "data").string());
  EXPECT_EQ(get<std::vector<std::string>>(v, 12)[0], (folder.path() / "base/x").string());
  const OptionValues set = check(every_type(), load_experiment(file, {{"model.options.where", "here"}}).model_options);
  EXPECT_EQ(get<std::string>(set, 5), (std::filesystem::current_path() / "here").string());
}

TEST(Options, EmptyPathsStayEmpty) {
  const TemporaryFolder folder;
  EXPECT_EQ(get<std::string>(check(every_type(), table_in(folder, "where = \"\"\n")), 5), "");
}

TEST(Options, ADefaultThatItsOwnTableForbidsIsThePluginsFault) {
  OptionTable spec = every_type();
  for (const char* literal : {"101", "\"x\"", "[", "1 2"}) {
    spec[1].default_value = literal;
    try {
      check_options(spec, nullptr, "model.options", "model 'net'");
      ADD_FAILURE() << literal;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::plugin);
      const std::string start = std::string("[config] model 'net' declares the default ") + literal +
                                " for model.options.count, which its own table does not allow";
      EXPECT_TRUE(std::string(error.what()).starts_with(start)) << error.what();
    }
  }
}

TEST(Options, BoundsBeyondDoublesAreExact) {
  OptionTable spec = {option("big", OptionType::i64)};
  spec[0].max = "9007199254740993";
  EXPECT_EQ(refused(spec, "big = 9007199254740993\n"), "accepted");
  EXPECT_NE(refused(spec, "big = 9007199254740994\n"), "accepted");
}

TEST(Options, ResolvedTomlReadsBackEqual) {
  const TemporaryFolder folder;
  const OptionTable spec = every_type();
  const toml::table first = options_to_toml(spec, check(spec, table_in(folder, every_value)));
  const OptionValues again = check_options(spec, &first, "model.options", "model 'net'");
  EXPECT_EQ(first, options_to_toml(spec, again));
  EXPECT_EQ(*first["room"].value<std::string>(), "64 MiB");
  EXPECT_EQ(*first["stages"][0]["norm"].value<std::string>(), "layer");
  EXPECT_EQ(*first["where"].value<std::string>(), (folder.path() / "data/emg").string());
}

TEST(Options, AWrittenExperimentKeepsCheckedOptions) {
  const TemporaryFolder folder;
  const Experiment e = load_experiment(folder.write("x.toml", required_keys + "[model.options]\n" + every_value));
  const OptionTable spec = every_type();
  const toml::table resolved = options_to_toml(spec, check(spec, e.model_options));
  const TemporaryFolder elsewhere;
  const Experiment again = load_experiment(elsewhere.write("y.toml", experiment_to_toml(e, resolved, {}, {})));
  EXPECT_EQ(again.model_options, resolved);
  EXPECT_EQ(options_to_toml(spec, check(spec, again.model_options)), resolved);
}

void expect_equal(const OptionTable& a, const OptionTable& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].type, b[i].type);
    EXPECT_EQ(a[i].is_list, b[i].is_list);
    EXPECT_EQ(a[i].required, b[i].required);
    EXPECT_EQ(a[i].default_value, b[i].default_value);
    EXPECT_EQ(a[i].min, b[i].min);
    EXPECT_EQ(a[i].max, b[i].max);
    EXPECT_EQ(a[i].choices, b[i].choices);
    EXPECT_EQ(a[i].help, b[i].help);
    expect_equal(a[i].table, b[i].table);
  }
}

TEST(OptionTables, SurviveJson) {
  OptionTable table = every_type();
  table[5].required = true;
  table[1].default_value = "12";
  const std::string text = option_table_to_json(table).dump();
  expect_equal(option_table_from_json(nlohmann::json::parse(text)), table);
}

// What [sweep] with these lines is refused for, against the options of both plugins.
std::string swept_refused(const std::string& lines) {
  const TemporaryFolder folder;
  const Experiment e = load_experiment(folder.write("x.toml", required_keys + "[sweep]\n" + lines));
  const std::string sentence =
      refusal([&] { check_swept_options(every_type(), *e.sweep, "model.options", "model 'net'"); });
  return replaced(sentence, folder.path().string() + "/", "");
}

TEST(SweptOptions, AreCheckedLikeTheOptionItself) {
  EXPECT_EQ(swept_refused("\"model.options.count\" = [7, 8]\n\"data.options.count\" = [\"x\"]\n"), "accepted");
  EXPECT_EQ(
      swept_refused("\"model.options.count\" = [7, 101]\n"),
      R"([config] x.toml:5:29: sweep."model.options.count"[1] is the integer 101; it must be an integer from 0 to 100)");
  EXPECT_EQ(
      swept_refused("model.options.counts = [[1, 2], [0]]\n"),
      R"([config] x.toml:5:34: sweep."model.options.counts"[1][0] is the integer 0; it must be an integer of at least 1)");
  EXPECT_EQ(
      swept_refused("\"model.options.counts\" = [1]\n"),
      R"([config] x.toml:5:27: sweep."model.options.counts"[0] is the integer 1; it must be a list of integers of at least 1: write [1])");
  EXPECT_EQ(swept_refused("\"model.options.cuont\" = [1]\n"),
            "[config] x.toml:5:1: unknown option model.options.cuont of model 'net'; did you mean count (an integer "
            "from 0 to 100)?");
}

TEST(SweptOptions, KeysOfATableWithAnyKeysAreFree) {
  EXPECT_EQ(swept_refused("\"model.options.any.width\" = [1, 2]\n"), "accepted");
  EXPECT_NE(swept_refused("\"model.options.any\" = [1]\n"), "accepted");
}

TEST(SweptOptions, ATableOfThemNeedNotBeWhole) {
  EXPECT_EQ(swept_refused("\"model.options\" = [{}, { count = 1, word = \"lstm\" }]\n"), "accepted");
  EXPECT_EQ(swept_refused("\"model.options\" = [{ word = \"gru\" }]\n"),
            R"([config] x.toml:5:29: sweep."model.options"[0].word is the string "gru"; it must be "lstm" or "mlp")");
}

}  // namespace

}  // namespace headroom
