// Unique names for files that get their final name once they are whole. Used by every folder of runner/.
#pragma once

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <unistd.h>

namespace headroom {

// "<process id>-<random number>", different at each call. The process id alone is not unique: other runs of this
// process, and processes of other containers that share the folder, may have it. [any]
inline std::string own_suffix() {
  unsigned number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<unsigned>(::clock());
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%d-%08x", static_cast<int>(::getpid()), number);
  return text.data();
}

inline constexpr std::string_view partial_mark = ".partial-";  // between the file's name and the suffix

// The path to write the file `path` to before it is whole. It is in the same folder, so that rename() is atomic; the
// leading dot hides it from headroom.files/1. [any]
inline std::filesystem::path partial_beside(const std::filesystem::path& path) {
  return path.parent_path() / ("." + path.filename().string() + std::string(partial_mark) + own_suffix());
}

}  // namespace headroom
