#include "config/literals.hpp"
#include "config/options.hpp"
#include "config/sizes.hpp"

namespace headroom {

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
        } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                             std::is_same_v<T, std::string>) {
          put_literal(scalar_literal(option, held));
        } else {
          std::string text = "[";
          for (auto&& element : held) text += scalar_literal<typename T::value_type>(option, element) + ", ";
          put_literal(text + "]");
        }
      },
      value.value);
}

}  // namespace

toml::table options_to_toml(const OptionTable& spec, const OptionValues& values) {
  toml::table table;
  for (size_t i = 0; i < spec.size() && i < values.size(); ++i) insert(table, spec[i], values[i]);
  return table;
}

}  // namespace headroom
