#include "record/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace headroom {

std::string short_number(double value, int digits_wanted) {
  if (!std::isfinite(value)) return exact_number(value);
  if (value == 0) return "0";
  // The decimal exponent: 3 for 1234.
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const bool plain = magnitude >= -4 && magnitude < 6;
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, format,
                                    plain ? std::max(0, digits_wanted - 1 - magnitude) : digits_wanted - 1);
  std::string digits(buffer, result.ptr), exponent;
  if (!plain) {
    exponent = digits.substr(digits.find('e'));
    digits.resize(digits.find('e'));
  }
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return digits + exponent;
}

std::string exact_number(double value) {
  // to_chars() would write the sign of a NaN.
  if (std::isnan(value)) return "nan";
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : std::string();
}

std::string short_duration(double seconds) {
  // Written so that NaN is caught too.
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto total = static_cast<long long>(std::llround(seconds));
  const int hours = static_cast<int>(total / 3600 % 24), minutes = static_cast<int>(total / 60 % 60);
  char text[64];
  if (total >= 86400) {
    std::snprintf(text, sizeof text, "%lldd %02d:%02d", total / 86400, hours, minutes);
  } else if (total >= 3600) {
    std::snprintf(text, sizeof text, "%d:%02d:%02d", hours, minutes, static_cast<int>(total % 60));
  } else {
    std::snprintf(text, sizeof text, "%d:%02d", minutes, static_cast<int>(total % 60));
  }
  return text;
}

std::string csv_field(const std::string& text) {
  // RFC 4180: quotes around the field, and doubled inside it.
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? "\"\"" : std::string(1, c));
  return field + "\"";
}

}  // namespace headroom
