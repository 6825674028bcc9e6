#include "plugins/option_checks.hpp"

#include "config/literals.hpp"
#include "error.hpp"

namespace headroom {

namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(Exit::plugin, "plugin", sentence); }

void require_literal(const std::optional<std::string>& text, const std::string& what) {
  if (!text) return;
  try {
    parse_literal(*text);
  } catch (const toml::parse_error& problem) {
    refuse(what + " is " + *text + ", which is not a TOML value (" + std::string(problem.description()) +
           "): write a string in quotes");
  }
}

std::string trial_literal(const OptionSpec& option) {
  // Choices of strings are declared without quotes.
  if (!option.choices.empty())
    return option.type == OptionType::string ? quote(option.choices.front()) : option.choices.front();
  switch (option.type) {
    case OptionType::boolean:
      return "false";
    case OptionType::string:
      return "\"check\"";
    case OptionType::path:
      return "\"/nonexistent/headroom-plugin-check\"";
    case OptionType::open_table:
      return "{}";
    // Bounds are inclusive (abi.h), so a bound is an allowed value.
    case OptionType::f64:
      return option.min ? *option.min : option.max ? *option.max : "0.0";
    default:
      return option.min ? *option.min : option.max ? *option.max : "0";
  }
}

void insert_required(toml::table& to, const OptionTable& table);
toml::table trial_table(const OptionTable& table);

void insert_trial(toml::table& to, const OptionSpec& option) {
  if (option.type == OptionType::table) {
    if (option.is_list) {
      toml::array list;
      list.push_back(trial_table(option.table));
      to.insert(option.name, std::move(list));
    } else {
      to.insert(option.name, trial_table(option.table));
    }
    return;
  }
  const std::string value = trial_literal(option);
  const toml::table holder = parse_literal(option.is_list ? "[" + value + "]" : value);
  to.insert(option.name, *holder.get("value"));
}

toml::table trial_table(const OptionTable& table) {
  toml::table result;
  insert_required(result, table);
  return result;
}

// check_options() fills in the defaults of the others.
void insert_required(toml::table& to, const OptionTable& table) {
  for (const OptionSpec& option : table) {
    if (option.required && !to.contains(option.name)) insert_trial(to, option);
  }
}

}  // namespace

void require_good_options(const OptionTable& table, const std::string& where) {
  for (const OptionSpec& option : table) {
    const std::string name = where + "." + option.name;
    if (key_literal(option.name) != option.name)
      refuse(name + " needs quotes in TOML: use letters, digits, _ and - only");
    if (option.help.empty()) refuse(name + " has no help: one line with its meaning and unit");
    if (option.required && option.default_value)
      refuse(name + " is required and has a default: it can only be one of them");
    require_literal(option.default_value, "the default of " + name);
    require_literal(option.min, "the minimum of " + name);
    require_literal(option.max, "the maximum of " + name);
    require_good_options(option.table, name);
    // Without a value of the user's this checks the default against type, bounds and choices.
    if (option.default_value) check_options({option}, nullptr, where, "the plugin's own defaults");
  }
}

OptionValues trial_values(const OptionTable& table, toml::table set, std::string_view where, std::string_view owner) {
  insert_required(set, table);
  return check_options(table, &set, where, owner);
}

}  // namespace headroom
