// sweep.constraint: an expression over keys, "train.batch_size * train.gradient_accumulation_steps == 64". Arithmetic
// (+ - * / %), comparisons, `and`, `or`, `not`, brackets, numbers, 'words' and true or false.
#pragma once

#include <functional>
#include <string>
#include <toml++/toml.h>
#include <variant>
#include <vector>

namespace headroom {

using ConstraintValue = std::variant<bool, double, std::string>;

class Constraint {
 public:
  // `written`: the string in the file; errors name its line and column. Error(bad_input).
  explicit Constraint(const toml::value<std::string>& written);

  // Whether it holds; `value_of` gives the values of its keys. Error(bad_input) where types do not match.
  using ValueOf = std::function<ConstraintValue(const std::string& key)>;
  bool holds(const ValueOf& value_of) const;

  // The keys that it names, and where, for errors.
  struct NamedKey {
    std::string path;
    toml::source_region at;
  };
  std::vector<NamedKey> keys() const;

  struct Term {
    std::string what;  // an operator; "value" or "key"
    size_t at = 0;     // offset in the text
    ConstraintValue value = false;
    std::vector<Term> parts = {};
  };

 private:
  ConstraintValue evaluate(const Term& term, const ValueOf& value_of) const;
  toml::source_region place_of(size_t offset) const;

  toml::source_region written_at_;
  std::string text_;
  Term root_;
};

}  // namespace headroom
