#include "config/sizes.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace headroom {

namespace {

struct Unit {
  std::string_view name;  // lower case
  double factor;
};

constexpr double kilo = 1000, kibi = 1024;
constexpr std::array byte_units{
    Unit{"b", 1},
    Unit{"kb", kilo},
    Unit{"mb", kilo* kilo},
    Unit{"gb", kilo* kilo* kilo},
    Unit{"tb", kilo* kilo* kilo* kilo},
    Unit{"kib", kibi},
    Unit{"mib", kibi* kibi},
    Unit{"gib", kibi* kibi* kibi},
    Unit{"tib", kibi* kibi* kibi* kibi},
};
constexpr std::array time_units{
    Unit{"ms", 1e-3}, Unit{"s", 1}, Unit{"min", 60}, Unit{"h", 3600}, Unit{"d", 86400},
};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Not std::tolower(), which asks the locale.
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// "1.5 GiB" in two: the digits and the unit after them.
std::pair<std::string_view, std::string_view> number_and_unit(std::string_view text) {
  text = trimmed(text);
  const size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end), trimmed(text.substr(end))};
}

// Only digits and points come here, so there is no sign, exponent, inf or nan.
std::optional<double> parse_digits(std::string_view digits) {
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != end || digits.empty() || !std::isfinite(value)) return std::nullopt;
  return value;
}

template <class Units>
std::optional<double> factor_of(const Units& units, std::string_view name) {
  // Plain bytes or seconds.
  if (name.empty()) return 1.0;
  for (const Unit& unit : units) {
    if (unit.name == lower(name)) return unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_bytes(std::string_view text) {
  const auto [digits, name] = number_and_unit(text);
  const auto factor = factor_of(byte_units, name);
  const auto value = parse_digits(digits);
  if (!factor || !value) return std::nullopt;
  int64_t whole = 0;  // exact beyond 2^53, where a double is not
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error == std::errc() && stop == digits.data() + digits.size()) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(whole, static_cast<int64_t>(*factor), &bytes)) return std::nullopt;
    return bytes;
  }
  const double bytes = *value * *factor;
  // The cast of a larger one would be undefined.
  if (bytes >= 0x1p63) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  // 0 stays in bytes, though every unit divides it.
  while (bytes != 0 && unit + 1 < names.size() && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + std::string(names[unit]);
}

std::optional<double> parse_duration(std::string_view text) {
  const auto [digits, name] = number_and_unit(text);
  const auto factor = factor_of(time_units, name);
  const auto value = parse_digits(digits);
  if (!factor || !value) return std::nullopt;
  return *value * *factor;
}

std::string format_duration(double seconds) {
  for (const auto& [name, factor] : {Unit{"d", 86400}, Unit{"h", 3600}, Unit{"min", 60}}) {
    // Quotients round: a unit is taken only where it gives the seconds back exactly.
    const double count = seconds / factor;
    if (count >= 1 && count < 1e6 && count == std::floor(count) && count * factor == seconds) {
      return std::to_string(static_cast<int64_t>(count)) + " " + std::string(name);
    }
  }
  // The smallest double has 326 characters in this form.
  std::array<char, 400> digits{};  // without an exponent, which parse_duration() does not read
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), seconds, std::chars_format::fixed).ptr;
  return std::string(digits.data(), end) + " s";
}

std::optional<double> parse_share(std::string_view text) {
  const auto [digits, name] = number_and_unit(text);
  const auto value = parse_digits(digits);
  if (name != "%" || !value || *value <= 0 || *value > 100) return std::nullopt;
  return *value / 100;
}

std::optional<std::string> parse_limit(std::string_view text) {
  text = trimmed(text);
  if (text == "auto" || text == "off") return std::string(text);
  if (parse_share(text)) return std::string(number_and_unit(text).first) + "%";
  const auto bytes = parse_bytes(text);
  // A limit of nothing would refuse everything.
  return bytes && *bytes > 0 ? std::optional(std::to_string(*bytes)) : std::nullopt;
}

std::string format_limit(const std::string& limit) {
  // Digits alone are bytes; words and shares stay as they are.
  const bool is_size = limit.find_first_not_of("0123456789") == std::string::npos;
  const auto bytes = is_size ? parse_bytes(limit) : std::nullopt;
  return bytes ? format_bytes(*bytes) : limit;
}

}  // namespace headroom
