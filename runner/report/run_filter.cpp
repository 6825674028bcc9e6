#include "report/run_filter.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "error.hpp"

namespace headroom {

namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <typename Value>
bool compare(const Value& a, const std::string& how, const Value& b) {
  if (how == "<") return a < b;
  if (how == "<=") return a <= b;
  if (how == ">") return a > b;
  if (how == ">=") return a >= b;
  if (how == "!=") return a != b;
  return a == b;
}

}  // namespace

RunFilter::RunFilter(const std::string& text) {
  // The first of these ends the key; the value may hold more of them.
  const size_t at = text.find_first_of("<>=!");
  if (at != std::string::npos) {
    size_t end = text.find_first_not_of("<>=!", at);
    if (end == std::string::npos) end = text.size();
    key_ = trimmed(text.substr(0, at));
    operator_ = text.substr(at, end - at);
    text_ = trimmed(text.substr(end));
  }
  if (text_.size() >= 2 && (text_.front() == '"' || text_.front() == '\'') && text_.back() == text_.front())
    text_ = text_.substr(1, text_.size() - 2);
  // "=" means "==": compare() takes both for equality.
  constexpr std::array<std::string_view, 7> known = {"<", "<=", ">", ">=", "==", "=", "!="};
  if (key_.empty() || text_.empty() || std::find(known.begin(), known.end(), operator_) == known.end()) {
    throw Error(Exit::bad_input, "cli",
                "--where \"" + text +
                    "\": expected a key, one of < <= > >= == !=, and a value, for example "
                    "--where 'val/loss < 0.1'");
  }
  number_ = quantity_of(text_);
}

bool RunFilter::holds(const RunFacts& run) const {
  const auto number = run.number(key_);
  // As numbers only where both are: as text "10" is below "9".
  if (number && number_) return compare(*number, operator_, *number_);
  const std::string text = run.text(key_);
  if (text.empty()) return operator_ == "!=";
  return compare(text, operator_, text_);
}

void sort_runs(std::vector<RunFacts>& runs, const std::string& key, bool descending) {
  const auto before = [&](const RunFacts& a, const RunFacts& b) {
    const auto value_of = [&](const RunFacts& run) {
      const auto value = run.number(key);
      // NaN is neither above nor below anything, and a sort needs an order: it counts as missing.
      return value && std::isnan(*value) ? std::nullopt : value;
    };
    const auto p = value_of(a), q = value_of(b);
    if (p && q) return descending ? *p > *q : *p < *q;
    if (p.has_value() != q.has_value()) return p.has_value();
    const std::string s = a.text(key), t = b.text(key);
    if (s.empty() != t.empty()) return t.empty();
    return descending ? s > t : s < t;
  };
  std::stable_sort(runs.begin(), runs.end(), before);
}

}  // namespace headroom
