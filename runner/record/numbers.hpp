// Numbers and times as people and tables read them. Never depends on the locale or the time zone.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// So many significant digits: 0.1234, 1234, 1.234e-07.
std::string short_number(double value, int digits = 4);
std::string exact_number(double value);      // shortest text that reads back equal; nan, inf, -inf
std::string short_duration(double seconds);  // 0:42, 1:05:09, 2d 03:00

std::string csv_field(const std::string& text);  // quoted where it has to be

// Times as files and folder names carry them: UTC, independent of locale and time zone.
using WallTime = std::chrono::system_clock::time_point;

std::string rfc3339(WallTime time);       // 2026-11-21T06:30:11.042Z
std::string compact_time(WallTime time);  // 20261121-063011

// The reverse of rfc3339(), in seconds since the epoch; nullopt when `text` is nothing of the kind.
std::optional<double> seconds_of(std::string_view rfc3339);

}  // namespace headroom
