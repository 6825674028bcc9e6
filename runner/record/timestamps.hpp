// Times as files and folder names carry them: UTC, independent of locale and time zone.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

using WallTime = std::chrono::system_clock::time_point;

std::string rfc3339(WallTime time);       // 2026-11-21T06:30:11.042Z
std::string compact_time(WallTime time);  // 20261121-063011

// The reverse of rfc3339(), in seconds since the epoch; nullopt when `text` is nothing of the kind.
std::optional<double> seconds_of(std::string_view rfc3339);

}  // namespace headroom
