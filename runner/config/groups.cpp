#include "config/groups.hpp"

#include "config/literals.hpp"
#include "config/sentences.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

Key number_from_zero(bool open) {
  return {"", KeyType::number, {Changes::mathematics}, "", {.low = 0, .open_low = open}};
}

template <class Value>
void read_or_refuse(const Key& key, const std::string& path, toml::node& node, Value& out) {
  if (!read_value(key, node, out)) refuse_value(key, path, node);
}

void read_match(const std::string& path, const toml::node& node, std::string& out) {
  if (node.is_string()) out = node.as_string()->get();
  if (!out.empty() && out.find('\0') == std::string::npos) return;
  refuse(node.source(), path + " is " + describe(node) +
                            "; it must be a pattern (*, ?) of the names of parameters, as \"backbone.*\"");
}

void refuse_key_of_group(const std::string& name, const toml::key& key) {
  const char* const meant = key.str() == "lr" ? "the rate of a group is a factor of train.optimizer.lr: write lr_scale"
                                              : "a group may hold match, lr_scale, weight_decay or freeze";
  refuse(key.source(), name + " has the unknown key " + key_literal(key.str()) + "; " + meant);
}

}  // namespace

ParameterGroup read_group(toml::table& written, const std::string& name) {
  ParameterGroup group;
  group.place = place(written.source());
  for (auto&& [key, value] : written) {
    const std::string path = name + "." + std::string(key.str());
    if (key.str() == "match") {
      read_match(path, value, group.match);
    } else if (key.str() == "lr_scale") {
      read_or_refuse(number_from_zero(/*open=*/true), path, value, group.lr_scale);
    } else if (key.str() == "weight_decay") {
      read_or_refuse(number_from_zero(/*open=*/false), path, value, group.weight_decay.emplace());
    } else if (key.str() == "freeze") {
      read_or_refuse({"", KeyType::boolean, {Changes::mathematics}, ""}, path, value, group.freeze);
    } else {
      refuse_key_of_group(name, key);
    }
  }
  if (group.match.empty()) {
    refuse(written.source(), name + " has no match; write which parameters it is for, as match = \"backbone.*\"");
  }
  if (group.freeze && (written.contains("lr_scale") || written.contains("weight_decay"))) {
    refuse(written.source(), name + " sets freeze = true beside " +
                                 (written.contains("lr_scale") ? "lr_scale" : "weight_decay") +
                                 "; parameters that are frozen stay as they are: leave one of them out");
  }
  return group;
}

// What is not set is left out, so that reading it again refuses nothing.
std::string group_literal(const ParameterGroup& group) {
  std::string text = "{ match = " + quote(group.match);
  if (group.lr_scale != 1.0) text += ", lr_scale = " + number_literal(group.lr_scale);
  if (group.weight_decay) text += ", weight_decay = " + number_literal(*group.weight_decay);
  if (group.freeze) text += ", freeze = true";
  return text + " }";
}

}  // namespace headroom
