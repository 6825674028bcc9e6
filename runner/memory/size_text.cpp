#include "memory/size_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace headroom {

std::string size_text(int64_t bytes) {
  static constexpr std::array<const char*, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::llabs(bytes) < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; std::abs(value) >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

}  // namespace headroom
