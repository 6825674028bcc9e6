// Names that nobody else uses: of files that get their real name once they are whole. Below every folder, as mutex.hpp.
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

// "<process id>-<random number>", another one at each call. The process id alone may be taken: by another run of this
// process, or by a process of another container that shares the folder. [any]
inline std::string own_suffix() {
  unsigned number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<unsigned>(::clock());
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%d-%08x", static_cast<int>(::getpid()), number);
  return text.data();
}

inline constexpr std::string_view partial_mark = ".partial-";  // between the file's name and the suffix

// Where the file `path` is written before it is whole. In the same folder, so that rename() is atomic; the dot hides it
// from headroom.files/1. [any]
inline std::filesystem::path partial_beside(const std::filesystem::path& path) {
  return path.parent_path() / ("." + path.filename().string() + std::string(partial_mark) + own_suffix());
}

}  // namespace headroom
