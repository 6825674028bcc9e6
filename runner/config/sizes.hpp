// Sizes and durations as people write them: "64 MiB", "1.5 GB", "10 min".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// B, KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB powers of 1024; letters in any case; no unit: bytes. Parts
// of a byte are dropped. nullopt: not a size, negative, or beyond int64.
std::optional<int64_t> parse_bytes(std::string_view text);

// The largest binary unit that divides `bytes` without rest: parse_bytes() gives the same number back.
std::string format_bytes(int64_t bytes);

// Seconds from ms, s, min, h or d; no unit: seconds. nullopt: not a duration, or negative.
std::optional<double> parse_duration(std::string_view text);

// In whole days, hours or minutes where that is exact, else in seconds: parse_duration() gives the same number back.
std::string format_duration(double seconds);

// 0.8 of "80%". nullopt: not a percentage above 0 and up to 100.
std::optional<double> parse_share(std::string_view text);

// memory.limit in the form that memory/limits.hpp takes: "auto", "off", "80%", or bytes in digits alone. nullopt: none
// of these, or a size of nothing.
std::optional<std::string> parse_limit(std::string_view text);

// The inverse, as format_bytes(): parse_limit() gives the same text back.
std::string format_limit(const std::string& limit);

}  // namespace headroom
