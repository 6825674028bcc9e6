#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "config/literals.hpp"
#include "config/sweep.hpp"

namespace headroom {

namespace {

// Without what binary fractions leave behind: 0.3, not 0.30000000000000004.
double trimmed(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return std::strtod(text, nullptr);
}

constexpr double slack = 1e-9;  // a last step that misses `to` by rounding reaches it

}  // namespace

std::string SweptRange::at(double share) const {
  const double value = log ? from * std::pow(to / from, share) : from + (to - from) * share;
  return integers ? std::to_string(std::llround(value)) : number_literal(trimmed(value));
}

std::vector<std::string> SweptRange::values() const {
  std::vector<std::string> list;
  const auto add = [&](std::string text) {
    if (list.empty() || list.back() != text) list.push_back(std::move(text));  // integers may meet
  };
  for (int64_t i = 0; i < count; ++i)
    add(at(count == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(count - 1)));
  if (count > 0) return list;
  for (int64_t i = 0;; ++i) {
    const auto steps = static_cast<double>(i);
    // Multiplied and not added up: rounding does not accumulate.
    const double value = log ? from * std::pow(step, steps) : from + step * steps;
    if (value > to + slack * std::abs(to)) return list;
    add(integers ? std::to_string(std::llround(value)) : number_literal(trimmed(value)));
  }
}

}  // namespace headroom
