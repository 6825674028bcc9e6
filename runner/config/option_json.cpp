#include <nlohmann/json.hpp>

#include "config/options.hpp"

namespace headroom {

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

}  // namespace headroom
