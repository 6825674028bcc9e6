#include "config/user_cache.hpp"

#include <cstdlib>
#include <fstream>

#include "own_suffix.hpp"

namespace headroom {

namespace fs = std::filesystem;

fs::path user_cache(std::string_view name) {
  // The XDG base directory specification: a path that is not absolute is ignored.
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder == '/')
    return fs::path(folder) / "headroom" / name;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".cache/headroom" / name;
  return {};
}

void keep_in_cache(const fs::path& file, std::string_view text) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  // A name of its own, so that two runs that keep the same never write into one file.
  const fs::path partial = file.string() + "." + own_suffix();
  if (std::ofstream(partial) << text << std::flush) {
    fs::rename(partial, file, ignored);
  } else {
    fs::remove(partial, ignored);
  }
}

}  // namespace headroom
