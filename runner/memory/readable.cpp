#include "memory/readable.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace headroom {

std::string size_text(int64_t bytes) {
  static constexpr std::array<const char*, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::llabs(bytes) < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // From 1023.95 on "%.1f" would print 1024.0.
  for (; std::abs(value) >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

std::string time_text(double seconds) {
  std::array<char, 64> text;
  // Rounded before the unit is chosen: 59.96 s would print as "60.0 s".
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

std::string counted(uint64_t number, std::string_view noun) {
  return std::to_string(number).append(" ").append(noun).append(number == 1 ? "" : "s");
}

std::string percent_text(double part, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f %%", digits, 100.0 * part);
  return text.data();
}

namespace {

// The length of the UTF-8 character at the beginning of `text`, 0 when there is none.
size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  // Well-formed UTF-8 is Table 3-7 of the Unicode Standard.
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);  // overlong forms, surrogates, beyond the last
  const bool odd = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return odd ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  constexpr std::string_view dots = "...";
  std::string clean;
  size_t cut = 0;  // where the text may end to leave room for the dots
  for (size_t i = 0; i < text.size();) {
    const size_t length = character_length(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    if (clean.size() + dots.size() <= most) cut = clean.size();
    if (length == 0) {
      clean += '?';
    } else if (length == 1 && (c < 0x20 || c == 0x7f)) {
      clean += ' ';
    } else {
      clean += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
    if (clean.size() > most) return clean.substr(0, cut).append(dots);
  }
  return clean;
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    constexpr std::string_view harmless = "/._-+=:,@%";
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || harmless.find(c) != std::string_view::npos ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string word = "'";
  // Nothing is special between single quotes but the quote itself, which has to stand outside.
  for (const char c : text) word.append(c == '\'' ? "'\\''" : std::string(1, c));
  return word + "'";
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace headroom
