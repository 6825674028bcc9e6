#include "config/sentences.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/document.hpp"
#include "config/literals.hpp"
#include "config/own_experiments.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

// Edits, a swap of neighbours counting as one.
size_t edit_distance(std::string_view a, std::string_view b) {
  // cost[i][j]: from the first i characters of `a` to the first j of `b`.
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string shown(std::string_view text) {
  constexpr size_t longest = 60;
  if (text.size() <= longest) return quote(text);
  size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not inside a UTF-8 sequence
  return quote(std::string(text.substr(0, end)) + "...");
}

std::string describe_list(const toml::array& list) {
  if (list.empty()) return "an empty list";
  const bool plain =
      std::none_of(list.begin(), list.end(), [](const toml::node& e) { return e.is_table() || e.is_array(); });
  // A list that would fill the sentence is only called a list.
  const std::string text = plain && list.size() <= 8 ? literal(list) : "";
  return text.empty() || text.size() > 60 ? "a list" : "the list " + text;
}

bool reads_as_number(const std::string& text, bool& whole) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // As TOML writes an integer: without a point or an exponent.
  whole = std::isfinite(value) && value == std::floor(value) && text.find_first_of(".eE") == std::string::npos;
  return !text.empty() && error == std::errc() && stop == end && std::isfinite(value);
}

}  // namespace

bool Range::contains(double value) const {
  return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
}

std::string place(const toml::source_region& at) {
  if (!at.path) return "";
  if (is_override(*at.path)) return *at.path;
  const fs::path file = *at.path;
  std::error_code ignored;
  const fs::path near = file.lexically_proximate(fs::current_path(ignored));
  // Files elsewhere are shown with their full path: a chain of ../ is hard to read.
  std::string text = near.empty() || *near.begin() == ".." ? file.string() : near.string();
  // Without a line only the file is known.
  if (at.begin) text += ":" + std::to_string(at.begin.line) + ":" + std::to_string(at.begin.column);
  return text;
}

namespace {

fs::path folder_of(const toml::source_region& at) {
  if (!at.path || at.path->empty() || is_override(*at.path)) return fs::current_path();
  return folder_of_paths(*at.path);
}

}  // namespace

fs::path resolved_path(const toml::node& node) {
  const std::string& text = node.as_string()->get();
  const fs::path path = (folder_of(node.source()) / text).lexically_normal();
  try {
    parse_literal(quote(path.string()));
  } catch (const toml::parse_error&) {
    // The text is of a TOML file, so the folder is at fault.
    refuse(node.source(), "the path " + quote(text) +
                              " is relative to a folder whose name is not UTF-8, as TOML must be; rename the folder, "
                              "or write a path that does not lead through it");
  }
  return path;
}

std::string describe(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "the string " + shown(node.as_string()->get());
    case toml::node_type::integer:
      return "the integer " + literal(node);
    case toml::node_type::floating_point:
      return "the number " + literal(node);
    case toml::node_type::boolean:
      return literal(node);
    case toml::node_type::array:
      return describe_list(*node.as_array());
    case toml::node_type::table:
      return "a table";
    case toml::node_type::date:
      return "the date " + literal(node);
    case toml::node_type::time:
      return "the time " + literal(node);
    case toml::node_type::date_time:
      return "the date " + literal(node);
    default:
      return "nothing";
  }
}

std::string any_of(const std::vector<std::string>& words, bool in_quotes) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += in_quotes ? quote(words[i]) : words[i];
  }
  return text;
}

std::string range_text(std::string_view noun, const Range& range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  std::string text(noun);
  // An open lower bound has no "from ... to": it is "above 0 and below 1".
  if (low && high && !range.open_low) {
    text += " from " + number_text(range.low) + (range.open_high ? " to below " : " to ") + number_text(range.high);
    return text;
  }
  if (low) text += (range.open_low ? " above " : " of at least ") + number_text(range.low);
  if (low && high) text += " and";
  if (high) text += (range.open_high ? " below " : low ? " up to " : " of at most ") + number_text(range.high);
  return text;
}

std::string nearest(std::string_view wrong, const std::vector<std::string>& known) {
  // The distance costs the product of both lengths, and no key is that long.
  if (wrong.size() > 200) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, wrong.size() / 3) + 1;  // farther is no likeness
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(wrong, candidate);
    // With as many edits as it has letters any word becomes any other.
    const bool mostly_other = distance >= std::min(wrong.size(), candidate.size());
    // Of equally near ones the first of the same length wins.
    const bool alike = distance == best_distance && candidate.size() == wrong.size() && best.size() != wrong.size();
    if ((distance < best_distance || alike) && !mostly_other) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string advice(const toml::node& found, Wanted wanted) {
  if (wanted == Wanted::list && !found.is_array() && !found.is_table()) return ": write [" + literal(found) + "]";
  if (const auto* text = found.as_string()) {
    bool whole = false;
    const bool number = reads_as_number(text->get(), whole);
    const bool fits = (wanted == Wanted::integer && whole) || wanted == Wanted::number;
    if (number && fits) return ": write " + text->get() + " without quotes";
    const bool truth = text->get() == "true" || text->get() == "false";
    if (wanted == Wanted::boolean && truth) return ": write " + text->get() + " without quotes";
  }
  if (const auto* value = found.as_floating_point(); value && wanted == Wanted::integer) {
    const double number = value->get();
    // Below 2^53 a double holds every integer exactly.
    if (number == std::floor(number) && std::fabs(number) < 0x1p53) {
      return ": write " + std::to_string(static_cast<int64_t>(number));
    }
  }
  const bool scalar = !found.is_string() && !found.is_array() && !found.is_table();
  if (wanted == Wanted::string && scalar) return ": write it in quotes, \"" + literal(found) + "\"";
  return "";
}

void refuse(const toml::source_region& at, const std::string& sentence) {
  const std::string where = place(at);
  throw Error(Exit::bad_input, "config", where.empty() ? sentence : where + ": " + sentence);
}

}  // namespace headroom
