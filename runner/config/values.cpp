#include "config/values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/groups.hpp"
#include "config/literals.hpp"
#include "config/old_keys.hpp"
#include "config/rescue.hpp"
#include "config/sizes.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

bool is(const toml::node& node, std::string_view word) { return node.is_string() && node.as_string()->get() == word; }

// An integer is a number too. TOML's inf and nan are none.
bool read_number(const toml::node& node, double& out) {
  if (!node.is_number()) return false;
  out = *node.value<double>();
  return std::isfinite(out);
}

// At most nine digits, which an int holds.
bool all_digits(std::string_view text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// What names a folder: nothing hidden, no separator, nothing that looks like an option.
bool is_run_name(const std::string& text) {
  const bool plain = std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '/'; });
  return plain && !text.empty() && text.size() <= 100 && text.front() != '.' && text.front() != '-';
}

// Paths and commands are C strings in the end, and stop at a zero.
bool is_text(const std::string& text) { return !text.empty() && text.find('\0') == std::string::npos; }

bool is_device(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  return text.starts_with("cuda:") && all_digits(std::string_view(text).substr(5));
}

// "val/loss". Whether it is measured is known only with the model.
bool is_metric(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size();
}

// Stores the form that memory/limits.hpp takes.
bool read_limit(std::string& text) {
  auto limit = parse_limit(text);
  if (limit) text = *std::move(limit);
  return limit.has_value();
}

bool is_file(const std::string& plugin) { return plugin.find('/') != std::string::npos || plugin.ends_with(".so"); }

// An id stays as it is; what looks like a path becomes absolute.
std::string resolved_plugin(const std::string& text, const toml::node& node) {
  return is_file(text) ? resolved_path(node).string() : text;
}

bool is_plugin_id(const std::string& text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

// One of ours, or what may be a plugin: whether there is one is known where plugins are looked for. Other programs'
// words for ours are none.
bool is_optimizer(const Key& key, const std::string& text) {
  if (std::ranges::find(key.choices, text) != key.choices.end()) return true;
  return is_text(text) && (is_file(text) || is_plugin_id(text)) && find_old_word(key.path, text).empty();
}

// Of the choices the one that `word` stands for.
std::string meant_word(const Key& key, const std::string& word) {
  const auto same = std::ranges::find(key.choices, normalised(word));
  if (same != key.choices.end()) return *same;
  const std::string_view other = find_old_word(key.path, word);
  return other.empty() ? nearest(word, key.choices) : std::string(other);
}

Wanted wanted_by(KeyType type) {
  switch (type) {
    case KeyType::boolean:
      return Wanted::boolean;
    case KeyType::integer:
    case KeyType::auto_integer:
    case KeyType::gc_points:
      return Wanted::integer;
    case KeyType::number:
      return Wanted::number;
    case KeyType::strings:
      return Wanted::list;
    case KeyType::run_name:
    case KeyType::path:
    case KeyType::plugin:
    case KeyType::command:
      return Wanted::string;
    default:
      return Wanted::other;
  }
}

}  // namespace

bool read_value(const Key&, toml::node& node, bool& out) {
  if (!node.is_boolean()) return false;
  out = node.as_boolean()->get();
  return true;
}

bool read_value(const Key& key, toml::node& node, int64_t& out) {
  // 0 stands for auto: the ranges of such keys begin at 1.
  if (key.type == KeyType::auto_integer && is(node, "auto")) {
    out = 0;
    return true;
  }
  if (key.type == KeyType::bytes && node.is_string()) {
    const auto size = parse_bytes(node.as_string()->get());
    out = size.value_or(0);
    return size.has_value();
  }
  if (!node.is_integer()) return false;
  out = node.as_integer()->get();
  // Sizes have no range in the table: all from 0 on are allowed.
  return key.type == KeyType::bytes ? out >= 0 : key.range.contains(static_cast<double>(out));
}

bool read_value(const Key& key, toml::node& node, int& out) {
  int64_t wide = 0;
  if (!read_value(key, node, wide)) return false;
  out = static_cast<int>(wide);  // the ranges of such keys are far inside int
  return true;
}

bool read_value(const Key& key, toml::node& node, uint64_t& out) {
  int64_t value = 0;
  if (!read_value(key, node, value) || value < 0) return false;
  out = static_cast<uint64_t>(value);
  return true;
}

bool read_value(const Key& key, toml::node& node, double& out) {
  if (key.type == KeyType::duration && node.is_string()) {
    const auto seconds = parse_duration(node.as_string()->get());
    out = seconds.value_or(0);
    return seconds.has_value();
  }
  return read_number(node, out) && (key.type == KeyType::duration ? out >= 0 : key.range.contains(out));
}

bool read_value(const Key& key, toml::node& node, std::string& out) {
  // Kept as text, because these keys hold words too.
  const auto* integer = node.as_integer();
  if (integer && (key.type == KeyType::gc_points || key.type == KeyType::limit)) {
    out = std::to_string(integer->get());
    return integer->get() >= 1;
  }
  if (!node.is_string()) return false;
  out = node.as_string()->get();
  switch (key.type) {
    case KeyType::choice:
      return std::ranges::find(key.choices, out) != key.choices.end();
    case KeyType::run_name:
      return is_run_name(out);
    case KeyType::device:
      return is_device(out);
    case KeyType::metric:
      return is_metric(out);
    case KeyType::gc_points:
      return out == "epoch" || out == "pressure";
    case KeyType::limit:
      return read_limit(out);
    case KeyType::optimizer:
      if (!is_optimizer(key, out)) return false;
      out = resolved_plugin(out, node);
      return true;
    case KeyType::plugin:
      if (!is_text(out)) return false;
      out = resolved_plugin(out, node);
      return true;
    case KeyType::command:
      return is_text(out);
    default:
      return true;
  }
}

bool read_value(const Key&, toml::node& node, fs::path& out) {
  if (!node.is_string() || !is_text(node.as_string()->get())) return false;
  out = resolved_path(node);
  return true;
}

bool read_value(const Key& key, toml::node& node, std::vector<std::string>& out) {
  out.clear();
  // Empty stands for "none", {"auto"} for "auto": in a list neither is a name.
  if (key.type == KeyType::recompute && (is(node, "none") || is(node, "auto"))) {
    if (is(node, "auto")) out = {"auto"};
    return true;
  }
  const auto* list = node.as_array();
  if (list == nullptr) return false;
  for (const toml::node& element : *list) {
    if (!element.is_string()) return false;
    if (key.type == KeyType::recompute && (is(element, "none") || is(element, "auto"))) return false;
    out.push_back(element.as_string()->get());
  }
  return true;
}

bool read_value(const Key&, toml::node& node, StringsByName& out) {
  const auto* table = node.as_table();
  if (table == nullptr) return false;
  out.clear();
  for (const auto& [name, value] : *table) {
    if (!value.is_string()) return false;
    out.emplace_back(name.str(), value.as_string()->get());
  }
  return true;
}

bool read_value(const Key& key, toml::node& node, SchedulePoints& out) {
  auto* list = node.as_array();
  if (list == nullptr || list->empty()) return false;
  out.clear();
  for (toml::node& element : *list) {
    std::pair<double, double> point;
    if (!read_value(key, element, std::tie(point.first, point.second))) return false;
    if (!out.empty() && point.first < out.back().first) return false;
    out.push_back(point);
  }
  return true;
}

bool read_value(const Key& key, toml::node& node, std::optional<int64_t>& out) {
  return read_value(key, node, out.emplace());
}

bool read_value(const Key&, toml::node& node, toml::table& out) {
  if (!node.is_table()) return false;
  // Moved, because a copy would lose the places of its nodes.
  out = std::move(*node.as_table());
  return true;
}

bool read_value(const Key& key, toml::node& node, std::optional<toml::table>& out) {
  return read_value(key, node, out.emplace());
}

bool read_value(const Key&, toml::node& node, std::vector<RescueRung>& out) {
  auto* list = node.as_array();
  if (list == nullptr) return false;
  out.clear();
  for (toml::node& element : *list) {
    if (!element.is_table()) return false;
    out.push_back(read_rung(*element.as_table()));
  }
  return true;
}

bool read_value(const Key& key, toml::node& node, std::vector<ParameterGroup>& out) {
  auto* list = node.as_array();
  if (list == nullptr) return false;
  out.clear();
  for (toml::node& element : *list) {
    if (!element.is_table()) return false;
    out.push_back(read_group(*element.as_table(), key.path + "[" + std::to_string(out.size()) + "]"));
  }
  return true;
}

bool read_value(const Key& key, toml::node& node, std::tuple<double&, double&> out) {
  const auto* list = node.as_array();
  if (list == nullptr || list->size() != 2) return false;
  auto& [first, second] = out;
  return read_number((*list)[0], first) && read_number((*list)[1], second) && key.range.contains(first) &&
         key.range.contains(second);
}

void refuse_value(const Key& key, const std::string& name, const toml::node& node) {
  const auto* word = node.as_string();
  std::string ending = advice(node, wanted_by(key.type));
  if (const std::string near = word ? meant_word(key, word->get()) : ""; !near.empty())
    ending = ": did you mean " + quote(near) + "?";
  refuse(node.source(), name + " is " + describe(node) + "; it must be " + allowed(key) + ending);
}

std::string value_literal(const Key&, bool value) { return value ? "true" : "false"; }

std::string value_literal(const Key& key, int value) { return value_literal(key, int64_t{value}); }

std::string value_literal(const Key& key, int64_t value) {
  if (key.type == KeyType::auto_integer && value == 0) return quote("auto");
  return key.type == KeyType::bytes ? quote(format_bytes(value)) : std::to_string(value);
}

std::string value_literal(const Key&, uint64_t value) { return std::to_string(value); }

std::string value_literal(const Key& key, double value) {
  return key.type == KeyType::duration ? quote(format_duration(value)) : number_literal(value);
}

std::string value_literal(const Key& key, const std::string& value) {
  // Empty is what nobody set: the key is left out.
  if (value.empty()) return "";
  if (key.type == KeyType::limit) return quote(format_limit(value));
  // A number of steps, and no word.
  const bool number = key.type == KeyType::gc_points && all_digits(value.substr(0, 1));
  return number ? value : quote(value);
}

std::string value_literal(const Key&, const fs::path& value) { return value.empty() ? "" : quote(value.string()); }

std::string value_literal(const Key& key, const std::vector<std::string>& value) {
  if (key.type == KeyType::recompute && value.empty()) return quote("none");
  if (key.type == KeyType::recompute && value.front() == "auto") return quote("auto");
  std::string text;
  for (const std::string& element : value) text += (text.empty() ? "[" : ", ") + quote(element);
  return text.empty() ? "" : text + "]";
}

std::string value_literal(const Key&, const StringsByName& value) {
  std::string text;
  // In quotes: the prefixes of names hold dots, at which TOML would divide them.
  for (const auto& [name, to] : value) text += (text.empty() ? "{ " : ", ") + quote(name) + " = " + quote(to);
  return text.empty() ? "" : text + " }";
}

std::string value_literal(const Key& key, const SchedulePoints& value) {
  std::string text;
  for (const auto& [epoch, factor] : value)
    text += (text.empty() ? "[" : ", ") + value_literal(key, std::tie(epoch, factor));
  return text.empty() ? "" : text + "]";
}

std::string value_literal(const Key&, const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "";
}

std::string value_literal(const Key&, const toml::table& value) { return literal(value); }

std::string value_literal(const Key&, const std::optional<toml::table>& value) { return value ? literal(*value) : ""; }

std::string value_literal(const Key&, const std::vector<RescueRung>& value) {
  std::string text;
  for (const RescueRung& rung : value) {
    text += text.empty() ? "[\n" : "";
    // Said of every rung: one that is taken shows no difference, because the file's values have it already.
    text += std::string("  { keeps_mathematics = ") + (rung.keeps_mathematics ? "true" : "false");
    for (const auto& [key, literal] : settings_of(rung)) text += ", " + key + " = " + literal;
    text += " },\n";
  }
  return text.empty() ? "" : text + "]";
}

std::string value_literal(const Key&, const std::vector<ParameterGroup>& value) {
  std::string text;
  for (const ParameterGroup& group : value) text += (text.empty() ? "[\n  " : "  ") + group_literal(group) + ",\n";
  return text.empty() ? "" : text + "]";
}

std::string value_literal(const Key&, std::tuple<const double&, const double&> value) {
  return "[" + number_literal(std::get<0>(value)) + ", " + number_literal(std::get<1>(value)) + "]";
}

}  // namespace headroom
