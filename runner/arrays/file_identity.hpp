// Which file on disk something was learned from, and whether it is still that file.
#pragma once

#include <cstdint>
#include <string>
#include <sys/stat.h>

namespace headroom {

struct FileIdentity {
  uint64_t device = 0, inode = 0, size_bytes = 0;
  int64_t modified_s = 0, modified_ns = 0;

  static FileIdentity of(const struct stat& found) {
    return {found.st_dev, found.st_ino, static_cast<uint64_t>(found.st_size), found.st_mtim.tv_sec,
            found.st_mtim.tv_nsec};
  }
  bool operator==(const FileIdentity&) const = default;
};

// The file behind `path`. Throws sdk::Error where there is none.
FileIdentity identify(const std::string& path);

[[noreturn]] void throw_cannot_open(const std::string& path, int code);
[[noreturn]] void throw_changed(const std::string& path);
[[noreturn]] void throw_vanished(const std::string& path);

}  // namespace headroom
