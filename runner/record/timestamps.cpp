#include "record/timestamps.hpp"

#include <cstdio>
#include <ctime>

namespace headroom {
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
