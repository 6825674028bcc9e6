#include "config/option_text.hpp"

#include "config/literals.hpp"

namespace headroom {

namespace {

// For one value, and for the elements of a list.
struct Noun {
  std::string one, many;
};

Noun noun(const OptionSpec& option) {
  switch (option.type) {
    case OptionType::boolean:
      return {"true or false", "true and false"};
    case OptionType::i64:
      return {"an integer", "integers"};
    case OptionType::f64:
      return {"a number", "numbers"};
    case OptionType::string:
      return {"a string", "strings"};
    case OptionType::bytes:
      return {"a size such as \"64 MiB\" or a number of bytes", "sizes such as \"64 MiB\" or numbers of bytes"};
    case OptionType::path:
      return {"a path", "paths"};
    case OptionType::table:
    case OptionType::open_table:
      return {"a table", "tables"};
  }
  return {"a value", "values"};
}

// The bounds as the plugin wrote them: they are literals already.
std::string bounds(const OptionSpec& option) {
  if (option.min && option.max) return " from " + *option.min + " to " + *option.max;
  if (option.min) return " of at least " + *option.min;
  return option.max ? " of at most " + *option.max : "";
}

std::string choices(const OptionSpec& option) { return any_of(option.choices, option.type == OptionType::string); }

std::string subkeys(const OptionSpec& option) {
  std::vector<std::string> names;
  for (const OptionSpec& inner : option.table) names.push_back(inner.name);
  return names.empty() ? "" : " with " + any_of(names, false);
}

}  // namespace

std::string allowed_element(const OptionSpec& option) {
  if (!option.choices.empty()) return choices(option);
  return noun(option).one + bounds(option) + subkeys(option);
}

std::string allowed(const OptionSpec& option) {
  if (!option.is_list) return allowed_element(option);
  if (!option.choices.empty()) return "a list of " + choices(option);
  return "a list of " + noun(option).many + bounds(option) + subkeys(option);
}

Wanted wanted_by(const OptionSpec& option) {
  switch (option.type) {
    case OptionType::boolean:
      return Wanted::boolean;
    case OptionType::i64:
      return Wanted::integer;
    case OptionType::f64:
      return Wanted::number;
    case OptionType::string:
    case OptionType::path:
      return Wanted::string;
    // Sizes are numbers or strings, so neither can be advised.
    default:
      return Wanted::other;
  }
}

}  // namespace headroom
