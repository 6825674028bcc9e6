#include "memory/quantities.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace headroom {

std::string time_text(double seconds) {
  std::array<char, 64> text;
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) {
    std::snprintf(text.data(), text.size(), "%.*f s", seconds < 1 ? 2 : 1, seconds);
  } else if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%lld min %lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld h %lld min", whole / 3600, whole % 3600 / 60);
  }
  return text.data();
}

std::string percent_text(double part, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f %%", digits, 100.0 * part);
  return text.data();
}

}  // namespace headroom
