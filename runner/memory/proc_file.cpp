#include "memory/proc_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace headroom {

std::optional<std::string> read_proc_file(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> block;
  ssize_t got = 0;
  while ((got = read(file, block.data(), block.size())) > 0) text.append(block.data(), static_cast<size_t>(got));
  close(file);
  if (got < 0) return std::nullopt;  // a process that ended since open(), for one
  return text;
}

std::optional<int64_t> number_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key)) continue;
    const std::string_view rest = line.substr(key.size());
    const size_t digits = rest.find_first_not_of(" \t");
    if (digits == std::string_view::npos || (digits == 0 && !key.empty())) continue;  // a longer key
    int64_t number = 0;
    const char* end = rest.data() + rest.size();
    if (std::from_chars(rest.data() + digits, end, number).ec == std::errc()) return number;
  }
  return std::nullopt;
}

std::optional<int64_t> bytes_after(std::string_view text, std::string_view key) {
  const auto kibibytes = number_after(text, key);
  int64_t bytes = 0;
  if (!kibibytes || __builtin_mul_overflow(*kibibytes, int64_t{1024}, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace headroom
