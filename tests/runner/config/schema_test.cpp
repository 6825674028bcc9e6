// The JSON Schema says of experiment files what load_experiment() does.
#include "config/schema.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "config/keys.hpp"
#include "config/literals.hpp"
#include "config/sizes.hpp"
#include "files.hpp"

namespace headroom {

namespace {

using nlohmann::json;

json to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    json result = json::object();
    for (const auto& [key, value] : *table) result[std::string(key.str())] = to_json(value);
    return result;
  }
  if (const auto* list = node.as_array()) {
    json result = json::array();
    for (const toml::node& element : *list) result.push_back(to_json(element));
    return result;
  }
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  return *node.value<std::string>();
}

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  return value.is_number();
}

// POSIX regular expressions: the patterns use nothing they read differently, and GCC 12 warns about std::regex under
// sanitizers.
bool matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) throw std::runtime_error(pattern);
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

bool valid(const json& schema, const json& value);

bool valid_object(const json& schema, const json& value) {
  for (const auto& name : schema.value("required", json::array())) {
    if (!value.contains(name.get<std::string>())) return false;
  }
  for (const auto& [name, member] : value.items()) {
    if (schema.contains("properties") && schema["properties"].contains(name)) {
      if (!valid(schema["properties"][name], member)) return false;
    } else if (schema.contains("additionalProperties")) {
      const json& rest = schema["additionalProperties"];
      if (rest.is_boolean() ? !rest.get<bool>() : !valid(rest, member)) return false;
    }
  }
  return true;
}

bool valid_number(const json& schema, double value) {
  return value >= schema.value("minimum", value) && value <= schema.value("maximum", value) &&
         (!schema.contains("exclusiveMinimum") || value > schema["exclusiveMinimum"]) &&
         (!schema.contains("exclusiveMaximum") || value < schema["exclusiveMaximum"]);
}

// As much of the standard as the schema uses.
bool valid(const json& schema, const json& value) {
  const auto holds = [&](const json& inner) { return valid(inner, value); };
  if (schema.contains("anyOf") && !std::ranges::any_of(schema["anyOf"], holds)) return false;
  if (schema.contains("allOf") && !std::ranges::all_of(schema["allOf"], holds)) return false;
  if (schema.contains("if") && holds(schema["if"]) && !holds(schema["then"])) return false;
  if (schema.contains("const") && schema["const"] != value) return false;
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) return false;
  if (schema.contains("type") && !has_type(value, schema["type"])) return false;
  if (value.is_object()) return valid_object(schema, value);
  if (value.is_number()) return valid_number(schema, value);
  if (value.is_string()) return matches(value.get<std::string>(), schema.value("pattern", ""));
  if (!value.is_array()) return true;
  if (value.size() < schema.value("minItems", size_t{0}) || value.size() > schema.value("maxItems", value.size()))
    return false;
  return std::ranges::all_of(
      value, [&](const json& element) { return valid(schema.value("items", json::object()), element); });
}

OptionTable net_options() {
  OptionSpec width{.name = "width",
                   .type = OptionType::i64,
                   .required = true,
                   .default_value = {},
                   .min = "1",
                   .max = "64",
                   .choices = {},
                   .help = "of the net",
                   .table = {}};
  OptionSpec kind{.name = "kind",
                  .type = OptionType::string,
                  .default_value = "\"lstm\"",
                  .min = {},
                  .max = {},
                  .choices = {"lstm", "mlp"},
                  .help = "",
                  .table = {}};
  OptionSpec room{.name = "room",
                  .type = OptionType::bytes,
                  .default_value = {},
                  .min = {},
                  .max = {},
                  .choices = {},
                  .help = "",
                  .table = {}};
  OptionSpec stages{.name = "stages",
                    .type = OptionType::table,
                    .is_list = true,
                    .default_value = "[]",
                    .min = {},
                    .max = {},
                    .choices = {},
                    .help = "",
                    .table = {width, kind}};
  return {width, kind, room, stages};
}

class Schema : public testing::Test {
 protected:
  json schema_ = experiment_schema({{"m", net_options()}}, {{"s", {}}});
  bool accepts(const std::string& text) const { return valid(schema_, to_json(toml::parse(text))); }
  bool accepts_with_required(const std::string& text) const { return accepts(required_keys + text); }
};

TEST_F(Schema, NamesItsDraft) { EXPECT_EQ(schema_["$schema"], "https://json-schema.org/draft/2020-12/schema"); }

TEST_F(Schema, DescribesEveryKey) {
  for (const Key& key : known_keys()) {
    std::string pointer = "/properties/" + replaced(key.path, ".", "/properties/");
    ASSERT_TRUE(schema_.contains(json::json_pointer(pointer))) << key.path;
    EXPECT_EQ(schema_.at(json::json_pointer(pointer + "/description")), key.help + ": " + allowed(key));
  }
}

TEST_F(Schema, GivesDefaultsAsTheyAreWritten) {
  EXPECT_EQ(schema_["properties"]["train"]["properties"]["optimizer"]["properties"]["betas"]["default"],
            json({0.9, 0.999}));
  EXPECT_EQ(schema_["properties"]["train"]["properties"]["micro_batch"]["default"], "auto");
  EXPECT_EQ(schema_["properties"]["data"]["properties"]["chunk_cache_size"]["default"], "32 MiB");
}

TEST(SchemaOfOptimizers, HasTheOptionsOfTheNamedOne) {
  const json schema = experiment_schema({}, {}, {{"muon", net_options()}});
  const json& rule = schema["properties"]["train"]["allOf"][0];
  EXPECT_EQ(rule["if"]["properties"]["optimizer"]["properties"]["name"]["const"], "muon");
  EXPECT_TRUE(rule["then"]["properties"]["optimizer_options"]["properties"].contains("width"));
}

TEST_F(Schema, AcceptsWhatTheLoaderAccepts) {
  EXPECT_TRUE(accepts_with_required(""));
  EXPECT_TRUE(accepts("extends = \"x.toml\"\n"));
  EXPECT_TRUE(accepts_with_required(
      "train.groups = [{ match = \"a.*\", freeze = true }, { match = \"b\", lr_scale = 0.5, weight_decay = 0.0 }]\n"));
  EXPECT_TRUE(accepts_with_required("train.schedule = { name = \"table\", points = [[0, 0.1], [5, 1.0]] }\n"));
  EXPECT_TRUE(accepts_with_required("train.optimizer = { name = \"sgd\", lr = 1, betas = [0, 0.5] }\n"));
  EXPECT_TRUE(accepts_with_required("train.optimizer.name = \"muon\"\ntrain.optimizer_options = { momentum = 0.9 }\n"));
  EXPECT_TRUE(accepts_with_required("train.optimizer.name = \"build/muon.so\"\n"));
  EXPECT_TRUE(accepts_with_required(
      "data.cache_size = \"1.5 GiB\"\nmemory.limit = \"80%\"\nmemory.wait = \"10 min\"\nmemory.gc_every = 5\n"));
  EXPECT_TRUE(accepts_with_required("model.options = { width = 5, room = \"1 MiB\", stages = [{ width = 1 }] }\n"));
  EXPECT_TRUE(accepts_with_required("rescue = { taken = 1, rungs = [{ \"train.batch_size\" = 8 }] }\n"));
  EXPECT_TRUE(accepts_with_required("data.split = { train = 0.9, val = 0.1 }\nexperiment.device = \"cuda:1\"\n"));
}

TEST_F(Schema, RefusesWhatTheLoaderRefuses) {
  for (const char* text : {"train.batch_sise = 8\n",
                           "train.epochs = \"8\"\n",
                           "train.batch_size = 0\n",
                           "train.optimizer.name = \"AdamV\"\n",
                           "train.optimizer.betas = [0.9, 1.0]\n",
                           "train.optimizer.betas = [0.9]\n",
                           "train.optimizer.lr = 0\n",
                           "train.precision = \"fp8\"\n",
                           "train.schedule.points = []\n",
                           "train.groups = [{ freeze = true }]\n",
                           "train.groups = [{ match = \"a\", lr = 1.0 }]\n",
                           "train.groups = [{ match = \"a\", lr_scale = 0 }]\n",
                           "train.schedule.points = [[0, 1], [5]]\n",
                           "train.schedule.points = [[0, -1]]\n",
                           "data.cache_size = \"50 gigs\"\n",
                           "memory.limit = \"most\"\n",
                           "memory.gc_every = 0\n",
                           "experiment.device = \"gpu0\"\n",
                           "init.ignore = \"a\"\n",
                           "init.map = { a = 1 }\n",
                           "rescue.x = 1\n",
                           "rescue.rungs = [\"train.batch_size\"]\n",
                           "model.options = { widht = 5 }\n",
                           "model.options = { width = 65 }\n",
                           "model.options = { kind = \"gru\" }\n",
                           "model.options = { stages = [{ kind = \"mlp\" }] }\n",
                           "data.options = { anything = 1 }\n"}) {
    EXPECT_FALSE(accepts_with_required(text)) << text;
  }
  EXPECT_FALSE(accepts("[experiment]\nname = \"x\"\n"));
}

TEST_F(Schema, ReadsSizesAndDurationsAsTheLoaderDoes) {
  const auto agree = [&](const std::string& key, const std::string& text, bool accepted) {
    EXPECT_EQ(accepts_with_required(key + " = " + quote(text) + "\n"), accepted) << key << " = " << text;
  };
  for (const char* text : {"512 MiB", "1.5 GiB", ".5 GiB", "5.", "0", "7b", " 1\tKB ", "5 iB", "5 M", ".", "1.2.3",
                           "1 B\n", "", "-1", "1e3"})
    agree("data.cache_size", text, parse_bytes(text).has_value());
  for (const char* text : {"10 min", "1.5 H", ".5 Ms", "30", "2d", "1 m", "s", "1 s\n", "1 min 5 s"})
    agree("memory.wait", text, parse_duration(text).has_value());
  for (const char* text :
       {"auto", " off ", "Auto", "80%",   "12.5 %", ".5%",     "00.50%", "100.0%", "0%",      "0.0%", "100.1%",
        "101%", "99.9%", "%",    "2 GiB", ".5 GiB", "0.1 KiB", "010",    "0",      "0.0 GiB", "8 G",  "5 iB"})
    agree("memory.limit", text, parse_limit(text).has_value());
}

TEST_F(Schema, LeavesUnknownPluginsAlone) {
  EXPECT_TRUE(accepts(
      "experiment.name = \"x\"\nmodel = { plugin = \"other\", options = { anything = 1 } }\ndata.source = \"s\"\n"));
}

TEST_F(Schema, AcceptsThePresets) {
  for (const char* name : {"common", "default", "low_memory", "quick_demo", "high_performance"}) {
    const toml::table file = toml::parse_file(std::string(HEADROOM_SOURCE_DIR "/experiments/emg/") + name + ".toml");
    json value = to_json(file);
    value["extends"] = "x.toml";
    EXPECT_TRUE(valid(schema_, value)) << name;
  }
}

}  // namespace

}  // namespace headroom
