#include "config/sweep.hpp"

#include <utility>

#include "config/check_keys.hpp"
#include "config/fields.hpp"
#include "config/literals.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

// Calls visit("train.batch_size", the key as written, its list) for every swept key, written in quotes or dotted.
template <class Table, class Visit>
void each_swept(Table& table, const std::string& prefix, Visit visit) {
  for (auto&& [key, value] : table) {
    const std::string path = joined(prefix, key.str());
    if (path == "constraint") continue;
    if (value.is_table()) {
      each_swept(*value.as_table(), path, visit);
    } else {
      visit(path, key, value);
    }
  }
}

// sweep."train.batch_size"
std::string swept(const std::string& path) { return "sweep." + quote(path); }

bool is_plugin_option(std::string_view path) {
  return path.starts_with("model.options.") || path.starts_with("data.options.");
}

bool holds(const Key& key, toml::node& node) {
  if (key.type == KeyType::options) return node.is_table();  // read_value() would move it out of the list
  Experiment scratch;
  scratch.data.split.emplace();
  scratch.train.early_stop.emplace();
  bool good = false;
  each_field(scratch, [&](std::string_view path, auto&& field) {
    if (path == key.path) good = read_value(key, node, field);
  });
  return good;
}

// One value to try; of a section it is a table of keys.
void check_value(const std::string& path, const std::string& name, toml::node& node) {
  if (const Key* key = find_key(path)) {
    if (!holds(*key, node)) refuse_value(*key, name, node);
    return;
  }
  toml::table* table = node.as_table();
  if (table == nullptr) {
    refuse(node.source(),
           name + " is " + describe(node) + "; it must be a table with " + any_of(names_under(path), false));
  }
  check_keys(*table, path);
  for (auto&& [key, value] : *table) check_value(joined(path, key.str()), joined(name, key.str()), value);
}

template <class Node, class Check>
void check_each(Node& list, const std::string& name, Check check) {
  size_t index = 0;
  for (Node& element : *list.as_array()) check(element, name + "[" + std::to_string(index++) + "]");
}

void check_swept_key(const std::string& path, const toml::key& key, toml::node& list) {
  const bool known = is_plugin_option(path) || find_key(path) || is_section(path);
  if (!known || path.starts_with("sweep") || path.starts_with("rescue")) {
    const size_t dot = path.rfind('.');
    const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
    refuse(key.source(), swept(path) + " is not a key that can be swept" + meant_by(section, path.substr(dot + 1)));
  }
  if (!list.is_array() || list.as_array()->empty()) {
    refuse(list.source(), swept(path) + " is " + describe(list) + "; it must be a list of the values to try");
  }
  if (is_plugin_option(path)) return;
  check_each(list, swept(path),
             [&](toml::node& element, const std::string& name) { check_value(path, name, element); });
}

// A table that need not be whole: the experiment has the rest.
void check_some_options(const OptionTable& spec, const toml::table& table, const std::string& name,
                        std::string_view owner) {
  for (const auto& [key, value] : table) {
    const OptionSpec& option = find_option(spec, std::string(key.str()), key, name, owner);
    check_option(option, value, joined(name, key.str()), owner);
  }
}

}  // namespace

void check_sweep(toml::table& sweep) {
  if (const toml::node* constraint = sweep.get("constraint"); constraint && !constraint->is_string()) {
    refuse(constraint->source(), "sweep.constraint is " + describe(*constraint) + "; it must be a string");
  }
  each_swept(sweep, "", check_swept_key);
}

void check_swept_options(const OptionTable& spec, const toml::table& sweep, std::string_view where,
                         std::string_view owner) {
  const std::string table(where), prefix = table + ".";
  each_swept(sweep, "", [&](const std::string& path, const toml::key& key, const toml::node& list) {
    if (path.starts_with(prefix)) {
      const OptionSpec& option = find_option(spec, path.substr(prefix.size()), key, where, owner);
      check_each(list, swept(path),
                 [&](const toml::node& value, const std::string& name) { check_option(option, value, name, owner); });
    } else if (path == table) {
      check_each(list, swept(path), [&](const toml::node& value, const std::string& name) {
        check_some_options(spec, *value.as_table(), name, owner);
      });
    }
  });
}

}  // namespace headroom
