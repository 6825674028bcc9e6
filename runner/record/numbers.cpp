#include "record/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

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

namespace {

std::tm utc(WallTime time) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string rfc3339(WallTime time) {
  std::tm parts = utc(time);
  auto since = time - std::chrono::floor<std::chrono::seconds>(time);
  auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  char text[64];
  size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(milliseconds));
  return text;
}

std::string compact_time(WallTime time) {
  std::tm parts = utc(time);
  char text[64];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

std::optional<double> seconds_of(std::string_view rfc3339) {
  std::tm parts{};
  int milliseconds = 0;
  // A copy, because sscanf() needs a zero at the end; 32 bytes hold any such time.
  const std::string text(rfc3339.substr(0, 32));
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &milliseconds) != 7)
    return std::nullopt;
  // A tm counts years from 1900 and months from 0.
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts)) + milliseconds / 1e3;
}

}  // namespace headroom
