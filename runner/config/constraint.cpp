#include "config/constraint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "config/literals.hpp"
#include "config/sentences.hpp"

namespace headroom {

namespace {

using Term = Constraint::Term;

// Where `offset` of a string's text stands in its file. Escapes in the string shift what comes behind them.
toml::source_region inside(const toml::source_region& string, std::string_view text, size_t offset) {
  toml::source_region at = string;
  const std::string_view before = text.substr(0, offset);
  const auto breaks = static_cast<uint32_t>(std::ranges::count(before, '\n'));
  const size_t last = before.rfind('\n');
  at.begin.line += breaks;
  // On the first line the text begins behind the quote; columns count from 1.
  at.begin.column =
      breaks == 0 ? at.begin.column + 1 + static_cast<uint32_t>(offset) : static_cast<uint32_t>(offset - last);
  return at;
}

struct Level {
  std::array<std::string_view, 6> operators;
};

// From the one that binds loosest.
// Longer signs stand before those that they begin with: <= must not be read as <.
constexpr std::array levels{Level{{"or", "||"}}, Level{{"and", "&&"}}, Level{{"==", "!=", "<=", ">=", "<", ">"}},
                            Level{{"+", "-"}}, Level{{"*", "/", "%"}}};

// One spelling for each operator of the tree.
std::string plain(std::string_view sign) { return sign == "||" ? "or" : sign == "&&" ? "and" : std::string(sign); }

class Parser {
 public:
  Parser(const std::string& text, const toml::source_region& written_at) : text_(text), written_at_(written_at) {}

  Term parse() {
    Term term = binary(0);
    if (skip_blanks(); at_ < text_.size()) fail("expected an operator, as == or *, or the end");
    return term;
  }

 private:
  // The parser and who walks through the tree call themselves, and the tree is as deep as brackets and operators make
  // it: a hostile text must not exhaust the stack.
  static constexpr int deepest = 100, most_operators = 1000;

  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found = at_ < text_.size() ? quote(text_.substr(at_, 1)) : "the end";
    refuse(inside(written_at_, text_, at_), "sweep.constraint: " + expected + ", found " + found);
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  // Without -, which is the sign.
  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

  bool take(std::string_view word) {
    skip_blanks();
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (word.empty() || !rest.starts_with(word)) return false;
    // A word is no part of a longer name: `order` does not begin with `or`.
    if (is_name(word.back()) && rest.size() > word.size() && is_name(rest[word.size()])) return false;
    at_ += word.size();
    return true;
  }

  // Operators of one level are taken from left to right: 8 / 4 / 2 is 1.
  Term binary(size_t level) {
    if (level == levels.size()) return unary();
    Term left = binary(level + 1);
    for (;;) {
      skip_blanks();
      const size_t at = at_;
      const auto& signs = levels[level].operators;
      const auto sign = std::ranges::find_if(signs, [&](std::string_view s) { return take(s); });
      if (sign == signs.end()) return left;
      if (++operators_ > most_operators) fail("at most 1000 operators");
      Term right = binary(level + 1);
      left = {.what = plain(*sign), .at = at, .parts = {std::move(left), std::move(right)}};
    }
  }

  Term unary() {
    if (++depth_ > deepest) fail("at most 100 brackets and signs inside each other");
    skip_blanks();
    const size_t at = at_;
    Term term;
    if (take("not") || take("!")) {
      term = {.what = "not", .at = at, .parts = {unary()}};
    } else if (take("-")) {
      term = {.what = "negative", .at = at, .parts = {unary()}};
    } else if (take("(")) {
      term = binary(0);
      if (!take(")")) fail("expected )");
    } else {
      term = operand();
    }
    --depth_;
    return term;
  }

  Term operand() {
    const size_t at = at_;
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (first == '\'' || first == '"') return {.what = "value", .at = at, .value = word(first)};
    if (std::isdigit(static_cast<unsigned char>(first)) != 0) return {.what = "value", .at = at, .value = number()};
    if (take("true")) return {.what = "value", .at = at, .value = true};
    if (take("false")) return {.what = "value", .at = at, .value = false};
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == at) fail("expected a key, a number or a word in quotes");
    return {.what = "key", .at = at, .value = text_.substr(at, at_ - at)};
  }

  // Without escapes: a word that holds one kind of quote is put into the other.
  std::string word(char quote_mark) {
    const size_t end = text_.find(quote_mark, at_ + 1);
    if (end == std::string::npos) fail("a word in quotes does not end");
    std::string value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  double number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  const std::string& text_;
  const toml::source_region& written_at_;
  size_t at_ = 0;
  int depth_ = 0, operators_ = 0;
};

std::string noun(const ConstraintValue& value) {
  if (const auto* word = std::get_if<std::string>(&value)) return "the word " + quote(*word);
  if (const auto* number = std::get_if<double>(&value)) return "the number " + number_text(*number);
  return std::get<bool>(value) ? "true" : "false";
}

// nullopt: `sign` compares.
std::optional<double> computed(const std::string& sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "/") return a / b;
  if (sign == "%") return std::fmod(a, b);
  return std::nullopt;
}

template <class T>
bool compared(const std::string& sign, const T& a, const T& b) {
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  if (sign == "<=") return a <= b;
  if (sign == ">=") return a >= b;
  return sign == "<" ? a < b : a > b;
}

void collect(const Term& term, std::vector<const Term*>& keys) {
  if (term.what == "key") keys.push_back(&term);
  for (const Term& part : term.parts) collect(part, keys);
}

}  // namespace

Constraint::Constraint(const toml::value<std::string>& written)
    : written_at_(written.source()), text_(written.get()), root_(Parser(text_, written_at_).parse()) {}

toml::source_region Constraint::place_of(size_t offset) const { return inside(written_at_, text_, offset); }

std::vector<Constraint::NamedKey> Constraint::keys() const {
  std::vector<const Term*> terms;
  collect(root_, terms);
  std::vector<NamedKey> keys;
  for (const Term* term : terms) keys.push_back({std::get<std::string>(term->value), place_of(term->at)});
  return keys;
}

bool Constraint::holds(const ValueOf& value_of) const {
  const ConstraintValue value = evaluate(root_, value_of);
  if (const bool* decided = std::get_if<bool>(&value)) return *decided;
  refuse(place_of(0), "sweep.constraint gives " + noun(value) + "; it must compare something, as with ==");
}

ConstraintValue Constraint::evaluate(const Term& term, const ValueOf& value_of) const {
  if (term.what == "value") return term.value;
  if (term.what == "key") return value_of(std::get<std::string>(term.value));
  // The second argument only names the type.
  const auto as = [&]<class T>(const ConstraintValue& value, T, const char* wanted) -> T {
    if (const T* found = std::get_if<T>(&value)) return *found;
    refuse(place_of(term.at), "sweep.constraint: " + quote(term.what == "negative" ? "-" : term.what) + " needs " +
                                  wanted + ", and is given " + noun(value));
  };
  const ConstraintValue left = evaluate(term.parts[0], value_of);
  if (term.what == "not") return !as(left, bool(), "true or false");
  if (term.what == "negative") return -as(left, double(), "a number");
  if (term.what == "and" || term.what == "or") {
    const bool first = as(left, bool(), "true or false");
    // The right side is not looked at where the left one decides.
    if (first == (term.what == "or")) return first;
    return as(evaluate(term.parts[1], value_of), bool(), "true or false");
  }
  const ConstraintValue right = evaluate(term.parts[1], value_of);
  // Values of different types are unequal, which is no error.
  if (term.what == "==" || term.what == "!=") return (left == right) == (term.what == "==");
  // Words have an order too, but nothing can be computed with them.
  if (std::holds_alternative<std::string>(left) && std::holds_alternative<std::string>(right) &&
      !computed(term.what, 1, 1))
    return compared(term.what, std::get<std::string>(left), std::get<std::string>(right));
  const double a = as(left, double(), "numbers"), b = as(right, double(), "numbers");
  if (const auto result = computed(term.what, a, b)) return *result;
  return compared(term.what, a, b);
}

}  // namespace headroom
