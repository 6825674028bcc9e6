#include "config/open_table.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/literals.hpp"
#include "config/sentences.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

Json json_of(const toml::node& node, const std::string& key) {
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [name, value] : *table)
      object[std::string(name.str())] = json_of(value, key + "." + key_literal(name.str()));
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& element : *array)
      list.push_back(json_of(element, key + "[" + std::to_string(list.size()) + "]"));
    return list;
  }
  if (node.is_boolean()) return node.as_boolean()->get();
  if (node.is_integer()) return node.as_integer()->get();
  if (node.is_string()) return node.as_string()->get();
  if (node.is_floating_point() && std::isfinite(node.as_floating_point()->get()))
    return node.as_floating_point()->get();
  refuse(node.source(), key + " is " + describe(node) +
                            "; here it must be a finite number, a string, true or false, a list or a table");
}

std::string literal_of(const Json& json) {
  std::string text;
  switch (json.type()) {
    case Json::value_t::object:
      for (const auto& [name, value] : json.items())
        text += (text.empty() ? "" : ", ") + key_literal(name) + " = " + literal_of(value);
      return "{" + text + "}";
    case Json::value_t::array:
      for (const Json& element : json) text += (text.empty() ? "" : ", ") + literal_of(element);
      return "[" + text + "]";
    case Json::value_t::string:
      return quote(json.get<std::string>());
    case Json::value_t::number_float:
      return number_literal(json.get<double>());
    default:
      return json.dump();
  }
}

}  // namespace

std::string open_table_json(const toml::table& table, const std::string& key) { return json_of(table, key).dump(); }

toml::table open_table_toml(std::string_view json) {
  toml::table holder = parse_literal(literal_of(Json::parse(json)));
  return std::move(*holder.get("value")->as_table());
}

}  // namespace headroom
