#include "memory/held.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace headroom {

namespace {

// Opened once: a read from offset 0 gives fresh figures, and needs no descriptor when there are none left.
int status_file() {
  static const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  return file;
}

// The file's lines, of which some may be very long (those of thousands of groups), without an allocation: what does not
// fit the block is left out of its line.
class StatusLines {
 public:
  // False at the end.
  bool next(std::string_view& line) {
    size_t length = 0;
    for (;;) {
      if (at_ == filled_ && !fill()) return false;
      const char letter = block_[at_++];
      if (letter == '\n') break;
      if (length < line_.size()) line_[length++] = letter;
    }
    line = {line_.data(), length};
    return true;
  }

 private:
  bool fill() {
    const ssize_t got = pread(status_file(), block_.data(), block_.size(), offset_);
    if (got <= 0) return false;
    offset_ += got;
    at_ = 0;
    filled_ = static_cast<size_t>(got);
    return true;
  }

  std::array<char, 4096> block_;
  std::array<char, 96> line_;
  size_t at_ = 0, filled_ = 0;
  off_t offset_ = 0;
};

// "RssAnon:\t    148 kB"
int64_t bytes_in(std::string_view line, std::string_view key) {
  std::array<char, 32> number{};
  const std::string_view text = line.substr(key.size());
  std::memcpy(number.data(), text.data(), std::min(text.size(), number.size() - 1));
  return std::strtoll(number.data(), nullptr, 10) * 1024;
}

}  // namespace

int64_t held_bytes() {
  constexpr std::string_view anonymous = "RssAnon:", shared = "RssShmem:";
  StatusLines lines;
  int64_t bytes = 0;
  for (std::string_view line; lines.next(line);) {
    if (line.starts_with(anonymous)) bytes += bytes_in(line, anonymous);
    if (!line.starts_with(shared)) continue;
    return bytes + bytes_in(line, shared);  // stands behind the other
  }
  return bytes;
}

}  // namespace headroom
