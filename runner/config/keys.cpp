#include "config/keys.hpp"

#include <algorithm>

#include "config/literals.hpp"

namespace headroom {

namespace {

// `path` is `section`, or stands below it.
bool is_below(std::string_view path, std::string_view section) {
  return path.starts_with(section) && (path.size() == section.size() || path[section.size()] == '.');
}

}  // namespace

std::string_view Key::section() const {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
}

std::string_view Key::name() const { return std::string_view(path).substr(path.rfind('.') + 1); }

const Key* find_key(std::string_view path) {
  const std::span<const Key> keys = known_keys();
  const auto found = std::ranges::find(keys, path, &Key::path);
  return found == keys.end() ? nullptr : &*found;
}

// Sections have no rows of their own: they are there because of their keys.
bool is_section(std::string_view path) {
  const std::string prefix = std::string(path) + ".";
  return std::ranges::any_of(known_keys(), [&](const Key& key) { return key.path.starts_with(prefix); });
}

std::vector<std::string> names_under(std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  std::vector<std::string> names;
  for (const Key& key : known_keys()) {
    if (!key.path.starts_with(prefix)) continue;
    const std::string name = key.path.substr(prefix.size(), key.path.find('.', prefix.size()) - prefix.size());
    // A section inside has several keys, and is named once.
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<const Key*> keys_at(std::string_view path) {
  // Below `path`, or a table of options that `path` leads into.
  std::vector<const Key*> found;
  for (const Key& key : known_keys()) {
    if (is_below(key.path, path) || is_below(path, key.path)) found.push_back(&key);
  }
  return found;
}

bool is_subject(std::string_view path) {
  const std::vector<const Key*> keys = keys_at(path);
  // all_of() is true of an empty list, but an unknown path is no subject.
  return !keys.empty() &&
         std::ranges::all_of(keys, [](const Key* key) { return key->effect.changes == Changes::subject; });
}

bool is_cost(std::string_view path) {
  const std::vector<const Key*> keys = keys_at(path);
  return !keys.empty() &&
         std::ranges::all_of(keys, [](const Key* key) { return key->effect.changes == Changes::cost; });
}

bool is_probed(std::string_view path) {
  // What is not known is taken for probed: the safe side.
  const std::vector<const Key*> keys = keys_at(path);
  return keys.empty() || std::ranges::any_of(keys, [](const Key* key) { return key->effect.probed; });
}

std::string_view why_idle(const Experiment& experiment, std::string_view path) {
  const Key* key = find_key(path);
  return key && key->idle.applies && key->idle.applies(experiment) ? key->idle.why : std::string_view();
}

std::string effect_text(const Key& key) {
  switch (key.effect.changes) {
    case Changes::subject:
      return "which run it is";
    case Changes::mathematics:
      return "mathematics";
    case Changes::length:
      return "length";
    case Changes::cost:
      return "cost";
  }
  return "";
}

std::string allowed(const Key& key) {
  using enum KeyType;
  Range range = key.range;
  // A bound that only guards arithmetic is not worth a word.
  if (range.high >= many_to_write) range.high = std::numeric_limits<double>::infinity();
  switch (key.type) {
    case boolean:
      return "true or false";
    case integer:
      return range_text("an integer", range);
    case number:
      return range_text("a number", range);
    case choice:
      return any_of(key.choices, true);
    case optimizer:
      return any_of(key.choices, true) + ", or the id or the path of a plugin";
    case run_name:
      return "a name of at most 100 characters without \"/\" that does not begin with \".\" or \"-\"";
    case plugin:
      return "the id or the path of a plugin";
    case metric:
      return "a split and a metric such as \"val/loss\"";
    case device:
      return "\"auto\", \"cpu\", \"cuda\" or \"cuda:N\"";
    case auto_integer:
      return "\"auto\" or " + range_text("an integer", range);
    case gc_points:
      return "\"epoch\", \"pressure\" or a number of steps of at least 1";
    case limit:
      return "\"auto\", \"off\", a share such as \"80%\" or a size such as \"8 GiB\"";
    case bytes:
      return "a size such as \"64 MiB\" or a number of bytes";
    case duration:
      return "a duration such as \"10 min\" or a number of seconds";
    case path:
      return "a path";
    case command:
      return "a command for the shell";
    case betas:
      return "a list of two numbers from 0 to below 1";
    case points:
      return "a list of [epoch, factor] whose epochs never fall, as [[0, 0.1], [5, 1.0], [30, 0.01]]";
    case strings:
      return "a list of strings";
    case recompute:
      return "\"none\", \"auto\" or a list of names that the model offers (`headroom plugins show NAME`)";
    case strings_by_name:
      return "a table of strings, as { \"encoder.\" = \"model.encoder.\" }";
    case options:
      return "a table";
    case rungs:
      return "a list of tables of keys, as [{ \"train.batch_size\" = 8 }]";
    case groups:
      return "a list of tables, as [{ match = \"backbone.*\", lr_scale = 0.1 }]";
    case KeyType::sweep:
      return "a table of lists";
  }
  return "";
}

}  // namespace headroom
