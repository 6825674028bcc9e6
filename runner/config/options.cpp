#include "config/options.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/check_keys.hpp"
#include "config/document.hpp"
#include "config/literals.hpp"
#include "config/open_table.hpp"
#include "config/option_text.hpp"
#include "config/sentences.hpp"
#include "config/sizes.hpp"

namespace headroom {

namespace {

// Declared ahead: an option may be a table with options of its own.
OptionValues check_table(const OptionTable& spec, const toml::table& table, const std::string& where,
                         std::string_view owner);

// One scalar in the type an OptionValue holds; nullopt: not what the option takes.
template <class T>
std::optional<T> scalar(const OptionSpec& option, const toml::node& node);

template <>
std::optional<bool> scalar(const OptionSpec&, const toml::node& node) {
  return node.is_boolean() ? std::optional(node.as_boolean()->get()) : std::nullopt;
}

template <>
std::optional<int64_t> scalar(const OptionSpec& option, const toml::node& node) {
  const bool bytes = option.type == OptionType::bytes;
  if (bytes && node.is_string()) return parse_bytes(node.as_string()->get());
  if (!node.is_integer() || (bytes && node.as_integer()->get() < 0)) return std::nullopt;
  return node.as_integer()->get();
}

template <>
std::optional<double> scalar(const OptionSpec&, const toml::node& node) {
  // An integer is a number too, NaN is none.
  if (!node.is_number()) return std::nullopt;
  const double value = *node.value<double>();
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

template <>
std::optional<std::string> scalar(const OptionSpec& option, const toml::node& node) {
  if (!node.is_string()) return std::nullopt;
  const std::string& text = node.as_string()->get();
  if (text.find('\0') != std::string::npos) return std::nullopt;  // plugins see C strings
  // An empty path stays empty, and does not become a folder.
  if (option.type != OptionType::path || text.empty()) return text;
  return resolved_path(node).string();
}

// Bounds and choices, on the TOML value as it was written.
bool within(const OptionSpec& option, const toml::node& node) {
  // `sign` is 1 for a lower bound, -1 for an upper one.
  const auto bound_holds = [&](const std::optional<std::string>& bound, int sign) {
    if (!bound) return true;
    const toml::table holder = parse_literal(*bound);
    const toml::node& limit = *holder.get("value");
    if (option.type == OptionType::f64) return sign * *node.value<double>() >= sign * *limit.value<double>();
    // As integers: doubles round above 2^53.
    const int64_t value = *scalar<int64_t>(option, node), edge = scalar<int64_t>(option, limit).value_or(0);
    return sign > 0 ? value >= edge : value <= edge;
  };
  const bool numeric =
      option.type == OptionType::i64 || option.type == OptionType::f64 || option.type == OptionType::bytes;
  if (numeric && (!bound_holds(option.min, 1) || !bound_holds(option.max, -1))) return false;
  if (option.choices.empty()) return true;
  // Choices are text, whatever the option's type.
  const std::string written = node.is_string() ? node.as_string()->get() : literal(node);
  return std::ranges::find(option.choices, written) != option.choices.end();
}

// `element`: `node` is one of a list's, so the sentence says what an element may be.
[[noreturn]] void refuse_option(const OptionSpec& option, const toml::node& node, const std::string& key,
                                bool element) {
  const auto* word = node.as_string();
  std::string ending = advice(node, !element && option.is_list ? Wanted::list : wanted_by(option));
  if (const std::string near = word ? nearest(word->get(), option.choices) : ""; !near.empty())
    ending = ": did you mean " + quote(near) + "?";
  refuse(node.source(), key + " is " + describe(node) + "; it must be " +
                            (element ? allowed_element(option) : allowed(option)) + ending);
}

template <class T>
T checked_scalar(const OptionSpec& option, const toml::node& node, const std::string& key, bool element) {
  const auto value = scalar<T>(option, node);
  if (!value || !within(option, node)) refuse_option(option, node, key, element);
  return *value;
}

OptionValues checked_subtable(const OptionSpec& option, const toml::node& node, const std::string& key,
                              std::string_view owner, bool element) {
  if (!node.is_table()) refuse_option(option, node, key, element);
  return check_table(option.table, *node.as_table(), key, owner);
}

// `check` gets each element with its name, "key[0]".
template <class Check>
auto checked_list(const OptionSpec& option, const toml::node& node, const std::string& key, Check check) {
  if (!node.is_array()) refuse_option(option, node, key, false);
  std::vector<decltype(check(node, key))> values;
  for (const toml::node& element : *node.as_array())
    values.push_back(check(element, key + "[" + std::to_string(values.size()) + "]"));
  return values;
}

template <class T>
OptionValue checked_as(const OptionSpec& option, const toml::node& node, const std::string& key) {
  if (!option.is_list) return {checked_scalar<T>(option, node, key, false)};
  return {checked_list(option, node, key, [&](const toml::node& element, const std::string& name) -> T {
    return checked_scalar<T>(option, element, name, true);
  })};
}

OptionValue default_of(const OptionSpec& option, const std::string& key, std::string_view owner) {
  if (!option.default_value) return {};
  // Checked as a user's value is: what a plugin's own table forbids is the plugin's mistake.
  try {
    const toml::table holder = parse_literal(*option.default_value);
    return check_option(option, *holder.get("value"), key, owner);
  } catch (const std::exception& error) {
    throw Error(Exit::plugin, "config",
                std::string(owner) + " declares the default " + *option.default_value + " for " + key +
                    ", which its own table does not allow (" + error.what() + "); the plugin must be corrected");
  }
}

OptionValues check_table(const OptionTable& spec, const toml::table& table, const std::string& where,
                         std::string_view owner) {
  // Unknown keys first: a name that is spelt wrong would otherwise be reported as missing.
  for (const auto& [key, value] : table) find_option(spec, std::string(key.str()), key, where, owner);
  OptionValues values;
  for (const OptionSpec& option : spec) {
    const std::string key = where + "." + option.name;
    if (const toml::node* node = table.get(option.name)) {
      values.push_back(check_option(option, *node, key, owner));
    } else if (option.required) {
      refuse(table.source(), key + " is missing; " + std::string(owner) + " needs it: add " + option.name + " = ..., " +
                                 allowed(option));
    } else {
      values.push_back(default_of(option, key, owner));
    }
  }
  return values;
}

}  // namespace

const OptionSpec& find_option(const OptionTable& spec, const std::string& name, const toml::key& key,
                              std::string_view where, std::string_view owner) {
  if (const auto found = std::ranges::find(spec, name, &OptionSpec::name); found != spec.end()) return *found;
  std::vector<std::string> names;
  for (const OptionSpec& option : spec) names.push_back(option.name);
  const std::string near = nearest(name, names);
  std::string meant = meant_by_name(name);
  // A near option of this table is likelier than a key of the runner's with that name.
  if (!near.empty())
    meant = "; did you mean " + near + " (" + allowed(*std::ranges::find(spec, near, &OptionSpec::name)) + ")?";
  if (meant.empty()) meant = names.empty() ? "; it has no options" : "; its options are " + any_of(names, false);
  refuse(key.source(),
         "unknown option " + std::string(where) + "." + key_literal(name) + " of " + std::string(owner) + meant);
}

OptionValue check_option(const OptionSpec& option, const toml::node& node, const std::string& key,
                         std::string_view owner) {
  switch (option.type) {
    case OptionType::boolean:
      return checked_as<bool>(option, node, key);
    case OptionType::i64:
    case OptionType::bytes:
      return checked_as<int64_t>(option, node, key);
    case OptionType::f64:
      return checked_as<double>(option, node, key);
    case OptionType::string:
    case OptionType::path:
      return checked_as<std::string>(option, node, key);
    case OptionType::open_table:
      if (!node.is_table()) refuse_option(option, node, key, false);
      return {open_table_json(*node.as_table(), key)};
    case OptionType::table:
      break;
  }
  if (!option.is_list) return {checked_subtable(option, node, key, owner, false)};
  return {checked_list(option, node, key, [&](const toml::node& element, const std::string& name) {
    return checked_subtable(option, element, name, owner, true);
  })};
}

OptionValues check_options(const OptionTable& spec, const toml::table* table, std::string_view where,
                           std::string_view owner) {
  const toml::table empty;
  return check_table(spec, table ? *table : empty, std::string(where), owner);
}

// Flags that are false and bounds that are not set are left out.
nlohmann::json option_table_to_json(const OptionTable& spec) {
  nlohmann::json list = nlohmann::json::array();
  for (const OptionSpec& option : spec) {
    nlohmann::json json = {{"name", option.name}, {"type", static_cast<int32_t>(option.type)}, {"help", option.help}};
    if (option.is_list) json["list"] = true;
    if (option.required) json["required"] = true;
    if (option.default_value) json["default"] = *option.default_value;
    if (option.min) json["min"] = *option.min;
    if (option.max) json["max"] = *option.max;
    if (!option.choices.empty()) json["choices"] = option.choices;
    if (option.type == OptionType::table) json["table"] = option_table_to_json(option.table);
    list.push_back(std::move(json));
  }
  return list;
}

OptionTable option_table_from_json(const nlohmann::json& json) {
  OptionTable spec;
  const auto text = [](const nlohmann::json& from, const char* key) -> std::optional<std::string> {
    return from.contains(key) ? std::optional(from.at(key).get<std::string>()) : std::nullopt;
  };
  for (const nlohmann::json& entry : json) {
    OptionSpec option;
    option.name = entry.at("name").get<std::string>();
    option.type = static_cast<OptionType>(entry.at("type").get<int32_t>());
    option.help = entry.at("help").get<std::string>();
    option.is_list = entry.value("list", false);
    option.required = entry.value("required", false);
    option.default_value = text(entry, "default");
    option.min = text(entry, "min");
    option.max = text(entry, "max");
    option.choices = entry.value("choices", std::vector<std::string>{});
    if (entry.contains("table")) option.table = option_table_from_json(entry.at("table"));
    spec.push_back(std::move(option));
  }
  return spec;
}

namespace {

template <class T>
std::string scalar_literal(const OptionSpec& option, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return option.type == OptionType::bytes ? quote(format_bytes(value)) : std::to_string(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return number_literal(value);
  } else {
    return quote(value);
  }
}

void insert(toml::table& table, const OptionSpec& option, const OptionValue& value) {
  // Through its TOML text: sizes get their unit, and the parser makes every kind of node.
  const auto put_literal = [&](const std::string& text) {
    toml::table holder = parse_literal(text);
    std::move(*holder.get("value")).visit([&](auto&& node) { table.insert(option.name, std::move(node)); });
  };
  std::visit(
      [&](const auto& held) {
        using T = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
        } else if constexpr (std::is_same_v<T, OptionValues>) {
          table.insert(option.name, options_to_toml(option.table, held));
        } else if constexpr (std::is_same_v<T, std::vector<OptionValues>>) {
          toml::array list;
          for (const OptionValues& element : held) list.push_back(options_to_toml(option.table, element));
          table.insert(option.name, std::move(list));
        } else if constexpr (std::is_same_v<T, std::string>) {
          if (option.type == OptionType::open_table) {
            table.insert(option.name, open_table_toml(held));
          } else {
            put_literal(scalar_literal(option, held));
          }
        } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
          put_literal(scalar_literal(option, held));
        } else {
          std::string text = "[";
          // TOML allows the comma behind the last element of a list.
          for (auto&& element : held) text += scalar_literal<typename T::value_type>(option, element) + ", ";
          put_literal(text + "]");
        }
      },
      value.value);
}

}  // namespace

toml::table options_to_toml(const OptionTable& spec, const OptionValues& values) {
  toml::table table;
  // Values are in the order of the table.
  for (size_t i = 0; i < spec.size() && i < values.size(); ++i) insert(table, spec[i], values[i]);
  return table;
}

}  // namespace headroom
