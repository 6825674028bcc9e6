#include "config/sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "config/check_keys.hpp"
#include "config/document.hpp"
#include "config/fields.hpp"
#include "config/literals.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

// Members of [sweep] that are no keys to sweep.
constexpr std::array settings =
    std::to_array<std::string_view>({"constraint", "method", "trials", "seed", "strategy", "min_epochs", "reduction"});

bool is_plugin_option(std::string_view path) {
  return path.starts_with("model.options.") || path.starts_with("data.options.") ||
         path.starts_with("train.optimizer_options.");
}

// Where a table is a range, and not the keys below.
bool holds_values(const std::string& path) {
  const Key* key = find_key(path);
  return is_plugin_option(path) || (key != nullptr && key->type != KeyType::options);
}

// Calls visit("train.batch_size", the key as written, its list or range) for every swept key, in quotes or dotted.
template <class Table, class Visit>
void each_swept(Table& table, const std::string& prefix, Visit visit) {
  for (auto&& [key, value] : table) {
    const std::string path = joined(prefix, key.str());
    if (std::ranges::find(settings, path) != settings.end()) continue;
    if (value.is_table() && !holds_values(path)) {
      each_swept(*value.as_table(), path, visit);
    } else {
      visit(path, key, value);
    }
  }
}

// sweep."train.batch_size"
std::string swept(const std::string& path) { return "sweep." + quote(path); }

bool holds(const Key& key, toml::node& node) {
  if (key.type == KeyType::options) return node.is_table();  // read_value() would move it out of the list
  Experiment scratch;
  // each_field() passes over sections that are absent, so those of swept keys must be there.
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

[[noreturn]] void refuse_range(const toml::source_region& at, const std::string& path, const std::string& what) {
  refuse(at, swept(path) + " " + what +
                 "; a range is written { from = 8, to = 64, step = 8 }, with count = 4 in place " +
                 "of step, and log = true for equal ratios");
}

// A number of a range, checked as a value of its key.
double range_number(const std::string& path, toml::table& range, const char* name) {
  toml::node* node = range.get(name);
  if (node == nullptr) refuse_range(range.source(), path, std::string("has no ") + name);
  if (!node->is_number()) refuse_range(node->source(), path, std::string("has ") + describe(*node) + " for " + name);
  // Plugins' tables are not known here: check_swept_options() does this for them.
  if (!is_plugin_option(path)) check_value(path, swept(path) + "." + name, *node);
  return *node->value<double>();
}

bool are_integers(const std::string& path, const toml::table& range) {
  const Key* key = find_key(path);
  // A number takes fractions, also where both ends are written as integers.
  if (key && key->type == KeyType::number) return false;
  return std::ranges::all_of(std::array{"from", "to", "step"}, [&](const char* name) {
    const toml::node* node = range.get(name);
    return node == nullptr || node->is_integer();
  });
}

SweptRange read_range(const std::string& path, toml::table& table) {
  constexpr std::array names = std::to_array<std::string_view>({"from", "to", "step", "count", "log"});
  for (const auto& [key, value] : table) {
    if (std::ranges::find(names, key.str()) == names.end())
      refuse_range(key.source(), path, "has " + std::string(key.str()));
  }
  SweptRange range;
  range.from = range_number(path, table, "from"), range.to = range_number(path, table, "to");
  range.integers = are_integers(path, table);
  if (const toml::node* log = table.get("log")) {
    if (!log->is_boolean()) refuse_range(log->source(), path, "has " + describe(*log) + " for log");
    range.log = log->as_boolean()->get();
  }
  if (const toml::node* step = table.get("step")) {
    range.step = step->is_number() ? *step->value<double>() : 0;
    // Under log a step is a factor.
    if (!(range.step > (range.log ? 1.0 : 0.0)) || !std::isfinite(range.step))
      refuse_range(step->source(), path, "has " + describe(*step) + " for step");
  }
  if (const toml::node* count = table.get("count")) {
    range.count = count->is_integer() ? count->as_integer()->get() : 0;
    // A typing mistake must not list millions of values.
    if (range.count < 1 || range.count > 10'000 || range.step > 0)
      refuse_range(count->source(), path, "has " + describe(*count) + " for count");
  }
  if (range.from > range.to) refuse_range(table.source(), path, "goes from more to less");
  if (range.log && range.from <= 0) refuse_range(table.source(), path, "goes from 0 or below, where ratios end");
  if (range.step > 0) {
    // Two logarithms, because the ratio of the ends may be too large for a number.
    const double steps = range.log ? (std::log(range.to) - std::log(range.from)) / std::log(range.step)
                                   : (range.to - range.from) / range.step;
    // Also where an end is nan: a list that compares with it would never end.
    if (!(steps <= 10'000)) refuse_range(table.source(), path, "lists more than 10000 values");
  }
  return range;
}

SweptKey read_swept_key(const std::string& path, const toml::key& key, toml::node& value) {
  const bool known = is_plugin_option(path) || find_key(path) || is_section(path);
  if (!known || path.starts_with("sweep") || path.starts_with("rescue")) {
    const size_t dot = path.rfind('.');
    const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
    refuse(key.source(), swept(path) + " is not a key that can be swept" + meant_by(section, path.substr(dot + 1)));
  }
  SweptKey read{.path = path, .values = {}, .range = {}};
  if (toml::table* table = value.as_table()) {
    read.range = read_range(path, *table);
    if (read.range->is_listed()) read.values = read.range->values();
    return read;
  }
  if (!value.is_array() || value.as_array()->empty()) {
    refuse(value.source(),
           swept(path) + " is " + describe(value) +
               "; it must be a list of the values to try, or a range, as { from = 8, to = 64, step = 8 }");
  }
  for (const toml::node& element : *value.as_array()) read.values.push_back(literal(element));
  if (!is_plugin_option(path)) {
    check_each(value, swept(path),
               [&](toml::node& element, const std::string& name) { check_value(path, name, element); });
  }
  return read;
}

// A word among others; `value` stays where the key is not written.
void read_word(const toml::table& sweep, const std::string& key, const std::array<std::string_view, 2>& words,
               std::string& value) {
  const toml::node* node = sweep.get(key);
  if (node == nullptr) return;
  value = node->value<std::string>().value_or("");
  if (std::ranges::find(words, value) != words.end()) return;
  refuse(node->source(), "sweep." + key + " is " + describe(*node) + "; it must be " + quote(std::string(words[0])) +
                             " or " + quote(std::string(words[1])));
}

// A number that only `belongs_to` uses: "method = \"random\"; a grid is tried whole" where that is not written.
template <class Integer>
void read_number(const toml::table& sweep, const std::string& key, int64_t least, bool is_used,
                 const std::string& belongs_to, Integer& value) {
  const toml::node* node = sweep.get(key);
  if (node == nullptr) return;
  if (!node->is_integer() || node->as_integer()->get() < least) {
    refuse(node->source(),
           "sweep." + key + " is " + describe(*node) + "; it must be an integer of at least " + std::to_string(least));
  }
  if (!is_used) refuse(node->source(), "sweep." + key + " is for " + belongs_to);
  value = static_cast<Integer>(node->as_integer()->get());
}

void read_settings(SweepSection& section, const toml::table& sweep) {
  read_word(sweep, "method", {"grid", "random"}, section.method);
  const bool draws = section.method == "random";
  const std::string random = "method = \"random\"; a grid is tried whole";
  read_number(sweep, "trials", 1, draws, random, section.trials);
  read_number(sweep, "seed", 0, draws, random, section.seed);
  if (draws && section.trials == 0) {
    refuse(sweep.get("method")->source(),
           "sweep.method is \"random\", and sweep.trials is missing; say how many to draw, as trials = 20");
  }
  read_word(sweep, "strategy", {"all", "asha"}, section.strategy);
  const bool halves = section.strategy == "asha";
  const std::string halving = "strategy = \"asha\"; without it every trial runs to its end";
  read_number(sweep, "min_epochs", 1, halves, halving, section.min_epochs);
  read_number(sweep, "reduction", 2, halves, halving, section.reduction);
}

// The constraint's keys are keys that have a value: swept ones, others of the runner, options that are set.
void read_constraint(SweepSection& section, const toml::table& sweep) {
  const toml::node* written = sweep.get("constraint");
  if (written == nullptr) return;
  if (!written->is_string())
    refuse(written->source(), "sweep.constraint is " + describe(*written) + "; it must be a string");
  section.constraint.emplace(*written->as_string());
  for (const auto& [path, at] : section.constraint->keys()) {
    if (find_key(path) || is_plugin_option(path)) continue;
    const size_t dot = path.rfind('.');
    const std::string under = dot == std::string::npos ? "" : path.substr(0, dot);
    refuse(at, "sweep.constraint: " + path + " is not a key" + meant_by(under, path.substr(dot + 1)));
  }
}

// A key inside of an option that takes any.
bool is_in_open_table(const OptionTable& spec, const std::string& name) {
  const auto found = std::ranges::find(spec, name.substr(0, name.find('.')), &OptionSpec::name);
  return found != spec.end() && found->type == OptionType::open_table && found->name != name;
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

SweepSection read_sweep(toml::table& sweep) {
  SweepSection section;
  read_settings(section, sweep);
  using Position = std::tuple<uint32_t, uint32_t>;
  std::vector<std::pair<Position, SweptKey>> found;
  each_swept(sweep, "", [&](const std::string& path, const toml::key& key, toml::node& value) {
    const auto at = key.source().begin;
    found.emplace_back(Position(at.line, at.column), read_swept_key(path, key, value));
    const SweptKey& read = found.back().second;
    if (read.values.empty() && section.method == "grid")
      refuse_range(value.source(), path, "has neither step nor count, which a grid needs");
  });
  // toml++ keeps keys by the alphabet; a grid varies them in the order of the file.
  std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
  for (auto& [position, key] : found) section.keys.push_back(std::move(key));
  read_constraint(section, sweep);
  return section;
}

void lay_trial(toml::table& document, const std::vector<SweptChoice>& choices) {
  toml::table sweep = std::move(*document.get_as<toml::table>("sweep"));
  document.erase("sweep");
  toml::table top = empty_table_at(sweep.source());
  each_swept(sweep, "", [&](const std::string& path, const toml::key& key, toml::node& value) {
    const auto choice = std::ranges::find(choices, path, &SweptChoice::path);
    if (choice == choices.end()) return;
    if (choice->element) {
      put_at(top, path, key, std::move(*value.as_array()->get(*choice->element)));
    } else {
      // From the range's file, as if the number had been written there.
      toml::table holder = parse_literal(choice->literal, value.source().path ? *value.source().path : "");
      put_at(top, path, key, std::move(*holder.get("value")));
    }
  });
  lay_over(document, std::move(top));
}

void check_swept_options(const OptionTable& spec, const toml::table& sweep, std::string_view where,
                         std::string_view owner) {
  const std::string table(where), prefix = table + ".";
  each_swept(sweep, "", [&](const std::string& path, const toml::key& key, const toml::node& list) {
    if (path.starts_with(prefix)) {
      if (is_in_open_table(spec, path.substr(prefix.size()))) return;
      const OptionSpec& option = find_option(spec, path.substr(prefix.size()), key, where, owner);
      if (const toml::table* range = list.as_table()) {
        // Bounds are an interval: with both ends inside, all between them is.
        for (const char* end : {"from", "to"}) check_option(option, *range->get(end), swept(path) + "." + end, owner);
        return;
      }
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
