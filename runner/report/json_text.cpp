#include "report/json_text.hpp"

#include <algorithm>

#include "record/numbers.hpp"
#include "record/run_folder.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

std::string number_text(const std::string& key, const Json& value) {
  const auto number = value.get<double>();
  if (key.ends_with("bytes")) return amount_text(number, Quantity::bytes);
  if (key.ends_with("_ms")) return amount_text(number / 1e3, Quantity::seconds);
  if (key.ends_with("_us")) return amount_text(number / 1e6, Quantity::seconds);
  if (key.ends_with("seconds")) return amount_text(number, Quantity::seconds);
  // These are parts of one.
  if (key.ends_with("_rate") || key.ends_with("_fraction")) return short_number(100 * number) + " %";
  if (value.is_number_integer()) return amount_text(number, Quantity::count);
  return short_number(number);
}

// {"open": {"seconds": 1, "count": 2}, "read": {"seconds": ...}}: a table of its own.
bool is_uniform(const Json& object) {
  if (!object.is_object() || object.size() < 2) return false;
  const auto& first = object.begin().value();
  if (!first.is_object() || first.empty()) return false;
  return std::all_of(object.begin(), object.end(), [&](const Json& member) {
    if (!member.is_object() || member.size() != first.size()) return false;
    return std::all_of(member.items().begin(), member.items().end(),
                       [&](const auto& item) { return first.contains(item.key()) && !item.value().is_structured(); });
  });
}

std::string uniform_table(const std::string& name, const Json& object) {
  std::vector<std::string> heading = {words_of_key(name)};
  for (const auto& [key, value] : object.begin().value().items()) heading.push_back(words_of_key(key));
  Rows rows;
  for (const auto& [key, member] : object.items()) {
    std::vector<std::string> row = {words_of_key(key)};
    for (const auto& [inner, value] : member.items()) row.push_back(text_of_json(inner, value));
    rows.push_back(std::move(row));
  }
  return table_html(heading, rows);
}

// `bytes`: what lies within a "..._bytes" is in bytes too.
void collect(const std::string& outer, bool bytes, const Json& object, Rows& rows, std::string& tables, int depth) {
  // Files may come from anybody, so the recursion is bounded: deeper levels are shown as JSON.
  constexpr int deepest = 6;
  for (const auto& [key, value] : object.items()) {
    const std::string name = outer.empty() ? words_of_key(key) : outer + " " + words_of_key(key);
    if (is_uniform(value)) {
      tables += uniform_table(name, value);
    } else if (value.is_object() && depth < deepest) {
      collect(name, key.ends_with("_bytes"), value, rows, tables, depth + 1);
    } else {
      rows.push_back({name, text_of_json(bytes ? key + "_bytes" : key, value)});
    }
  }
}

}  // namespace

std::string text_of_json(const std::string& key, const Json& value) {
  constexpr size_t longest = 300;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "-";
  if (value.is_number()) return number_text(key, value);
  std::string text = json_text(value);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

std::string json_table(const Json& object) {
  if (!object.is_object()) return "";
  Rows rows;
  std::string tables;
  collect("", /*bytes=*/false, object, rows, tables, 0);
  return (rows.empty() ? "" : table_html({}, rows)) + tables;
}

}  // namespace headroom
