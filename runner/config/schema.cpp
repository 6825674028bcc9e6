#include "config/schema.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/literals.hpp"
#include "config/sizes.hpp"
#include "config/values.hpp"

namespace headroom {

using nlohmann::json;

namespace {

// What parse_bytes(), parse_duration() and parse_limit() accept. Sizes beyond int64 and limits below one byte match as
// well, though those refuse them. No \s, which is more than they trim: line ends, for one.
constexpr const char* blanks = "[ \t]*";
constexpr const char* number = R"(([0-9]+\.?[0-9]*|\.[0-9]+))";
constexpr const char* above_zero = R"((0*[1-9][0-9]*(\.[0-9]*)?|0*\.0*[1-9][0-9]*))";
constexpr const char* up_to_hundred = R"((0*[1-9][0-9]?(\.[0-9]*)?|0*100(\.0*)?|0*\.0*[1-9][0-9]*))";
constexpr const char* byte_unit = "(([kKmMgGtT][iI]?)?[bB])?";
constexpr const char* time_unit = "([mM][sS]|[sS]|[mM][iI][nN]|[hH]|[dD])?";

// A pattern matches anywhere in a string: hence ^ and $.
std::string anchored(const std::string& text) { return std::string("^") + blanks + text + blanks + "$"; }

std::string size_pattern() { return anchored(std::string(number) + blanks + byte_unit); }

std::string duration_pattern() { return anchored(std::string(number) + blanks + time_unit); }

std::string limit_pattern() {
  return anchored(std::string("(auto|off|") + above_zero + blanks + byte_unit + "|" + up_to_hundred + blanks + "%)");
}

// `whole`: bounds are written as integers, 1 and not 1.0.
json with_range(json schema, const Range& range, bool whole) {
  const auto bound = [&](double value) -> json { return whole ? json(static_cast<int64_t>(value)) : json(value); };
  if (std::isfinite(range.low)) schema[range.open_low ? "exclusiveMinimum" : "minimum"] = bound(range.low);
  // 2^63, the bound of seeds, does not fit an int64 and tells an editor nothing.
  if (std::isfinite(range.high) && range.high < 0x1p53)
    schema[range.open_high ? "exclusiveMaximum" : "maximum"] = bound(range.high);
  return schema;
}

json any(std::vector<json> choices) { return {{"anyOf", std::move(choices)}}; }

json text_matching(const std::string& pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

json size_schema() { return any({{{"type", "integer"}, {"minimum", 0}}, text_matching(size_pattern())}); }

json value_schema(const Key& key) {
  const json integer = with_range({{"type", "integer"}}, key.range, true);
  const json strings = {{"type", "string"}};
  switch (key.type) {
    case KeyType::boolean:
      return {{"type", "boolean"}};
    case KeyType::integer:
      return integer;
    case KeyType::number:
      return with_range({{"type", "number"}}, key.range, false);
    case KeyType::choice:
      return {{"enum", key.choices}};
    case KeyType::optimizer:
      return any({{{"enum", key.choices}}, text_matching("^([a-z][a-z0-9_]*|.*/.*|.*[.]so)$")});
    case KeyType::run_name:
      return {{"type", "string"}, {"pattern", "^[^./-][^/]*$"}, {"maxLength", 100}};
    case KeyType::metric:
      return text_matching("^[^/]+/.+$");
    case KeyType::device:
      return text_matching("^(auto|cpu|cuda(:[0-9]+)?)$");
    case KeyType::auto_integer:
      return any({{{"const", "auto"}}, integer});
    case KeyType::gc_points:
      return any({{{"enum", {"epoch", "pressure"}}}, integer});
    case KeyType::limit:
      return any({{{"type", "integer"}, {"minimum", 1}}, text_matching(limit_pattern())});
    case KeyType::bytes:
      return size_schema();
    case KeyType::duration:
      return any({{{"type", "number"}, {"minimum", 0}}, text_matching(duration_pattern())});
    case KeyType::plugin:
    case KeyType::path:
    case KeyType::command:
      return {{"type", "string"}, {"minLength", 1}};
    case KeyType::betas:
      return {{"type", "array"},
              {"items", with_range({{"type", "number"}}, key.range, false)},
              {"minItems", 2},
              {"maxItems", 2}};
    case KeyType::points: {
      const json pair = {{"type", "array"},
                         {"items", with_range({{"type", "number"}}, key.range, false)},
                         {"minItems", 2},
                         {"maxItems", 2}};
      return {{"type", "array"}, {"items", pair}, {"minItems", 1}};
    }
    case KeyType::recompute:
      return any({{{"enum", {"none", "auto"}}}, {{"type", "array"}, {"items", strings}}});
    case KeyType::strings:
      return {{"type", "array"}, {"items", strings}};
    case KeyType::strings_by_name:
      return {{"type", "object"}, {"additionalProperties", strings}};
    case KeyType::options:
      return {{"type", "object"}};
    case KeyType::rungs:
      return {{"type", "array"}, {"items", {{"type", "object"}}}};
    case KeyType::groups:
      return {{"type", "array"},
              {"items",
               {{"type", "object"},
                {"properties",
                 {{"match", {{"type", "string"}, {"minLength", 1}}},
                  {"lr_scale", {{"type", "number"}, {"exclusiveMinimum", 0}}},
                  {"weight_decay", {{"type", "number"}, {"minimum", 0}}},
                  {"freeze", {{"type", "boolean"}}}}},
                {"required", {"match"}},
                {"additionalProperties", false}}}};
    case KeyType::sweep:
      // The keys that are swept are not described: any key of an experiment may be one.
      return {{"type", "object"},
              {"properties",
               {{"constraint", strings},
                {"method", {{"enum", {"grid", "random"}}}},
                {"trials", {{"type", "integer"}, {"minimum", 1}}},
                {"seed", {{"type", "integer"}, {"minimum", 0}}},
                {"strategy", {{"enum", {"all", "asha"}}}},
                {"min_epochs", {{"type", "integer"}, {"minimum", 1}}},
                {"reduction", {{"type", "integer"}, {"minimum", 2}}}}}};
  }
  return json::object();
}

json literal_json(const toml::node& node) {
  if (const auto* list = node.as_array()) {
    json result = json::array();
    for (const toml::node& element : *list) result.push_back(literal_json(element));
    return result;
  }
  if (const auto* table = node.as_table()) {
    json result = json::object();
    for (const auto& [key, value] : *table) result[std::string(key.str())] = literal_json(value);
    return result;
  }
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  // JSON has no dates: they are text.
  return node.is_string() ? json(node.as_string()->get()) : json(literal(node));
}

json literal_json(const std::string& text) {
  const toml::table holder = parse_literal(text);
  return literal_json(*holder.get("value"));
}

// The object schema of a section, made on the way where it is not there yet.
json& section_schema(json& root, std::string_view path) {
  json* at = &root;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    at = &(*at)["properties"][std::string(path.substr(0, dot))];
    if (!at->contains("type"))
      *at = {{"type", "object"}, {"properties", json::object()}, {"additionalProperties", false}};
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return *at;
}

json options_schema(const OptionTable& table, bool whole);

json element_schema(const OptionSpec& option) {
  json schema;
  switch (option.type) {
    case OptionType::boolean:
      schema = {{"type", "boolean"}};
      break;
    case OptionType::i64:
      schema = {{"type", "integer"}};
      break;
    case OptionType::f64:
      schema = {{"type", "number"}};
      break;
    case OptionType::bytes:
      // A string may hold a size too, to which bounds of numbers do not apply.
      return size_schema();
    case OptionType::string:
    case OptionType::path:
      schema = {{"type", "string"}};
      break;
    case OptionType::table:
      // The elements of a list are written in one place: lists are replaced whole, never merged.
      return options_schema(option.table, option.is_list);
    case OptionType::open_table:
      schema = {{"type", "object"}};
      break;
  }
  if (option.min) schema["minimum"] = literal_json(*option.min);
  if (option.max) schema["maximum"] = literal_json(*option.max);
  // As text, choices match strings alone.
  if (!option.choices.empty() && option.type == OptionType::string) schema["enum"] = option.choices;
  return schema;
}

// `whole`: the table is written in one place, so what it requires must be there; others may extend a file that has it.
json options_schema(const OptionTable& table, bool whole) {
  json schema = {{"type", "object"}, {"properties", json::object()}, {"additionalProperties", false}};
  for (const OptionSpec& option : table) {
    json value = element_schema(option);
    if (option.is_list) value = {{"type", "array"}, {"items", std::move(value)}};
    if (!option.help.empty()) value["description"] = option.help;
    if (option.default_value) value["default"] = literal_json(*option.default_value);
    schema["properties"][option.name] = std::move(value);
    if (whole && option.required) schema["required"].push_back(option.name);
  }
  return schema;
}

// A section whose key `name_path` is this id has these options: [model] with its `plugin`.
// `if` requires the name: without that it would also hold for a file that does not give it.
json conditional(const std::vector<std::string>& name_path, const char* options_key,
                 const std::map<std::string, OptionTable>& tables) {
  json list = json::array();
  for (const auto& [id, table] : tables) {
    json condition = {{"const", id}};
    for (auto key = name_path.rbegin(); key != name_path.rend(); ++key)
      condition = {{"properties", {{*key, condition}}}, {"required", {*key}}};
    list.push_back({{"if", condition}, {"then", {{"properties", {{options_key, options_schema(table, false)}}}}}});
  }
  return list;
}

json defaults() {
  json values = json::object();
  const Experiment defaults;
  each_field(defaults, [&](std::string_view path, const auto& field) {
    const Key& key = *find_key(path);
    // As a file would write it: "auto" and "32 MiB", not 0 and 33554432.
    const std::string text = value_literal(key, field);
    if (!text.empty() && !key.required && key.type != KeyType::options) values[key.path] = literal_json(text);
  });
  return values;
}

}  // namespace

json experiment_schema(const std::map<std::string, OptionTable>& models,
                       const std::map<std::string, OptionTable>& sources,
                       const std::map<std::string, OptionTable>& optimizers) {
  json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Headroom experiment"},
               {"type", "object"},
               {"properties",
                {{"extends", {{"type", "string"}, {"description", "an experiment file this one starts from"}}},
                 {"remove",
                  {{"type", "array"},
                   {"items", {{"type", "string"}}},
                   {"description", "keys and sections of that file that this one does without"}}}}},
               {"additionalProperties", false}};
  const json default_values = defaults();
  for (const Key& key : known_keys()) {
    json value = value_schema(key);
    value["description"] = key.help + ": " + allowed(key);
    if (default_values.contains(key.path)) value["default"] = default_values.at(key.path);
    section_schema(root, key.section())["properties"][std::string(key.name())] = std::move(value);
  }
  if (!models.empty()) root["properties"]["model"]["allOf"] = conditional({"plugin"}, "options", models);
  if (!sources.empty()) root["properties"]["data"]["allOf"] = conditional({"source"}, "options", sources);
  if (!optimizers.empty())
    root["properties"]["train"]["allOf"] = conditional({"optimizer", "name"}, "optimizer_options", optimizers);
  // A file that extends another may leave to that one what is required.
  root["anyOf"] = {{{"required", {"extends"}}}, {{"required", {"experiment", "model", "data"}}}};
  return root;
}

}  // namespace headroom
