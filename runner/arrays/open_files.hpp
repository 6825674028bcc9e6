// Files on disk: identities, which tell whether a file has changed since it was read; and descriptors, of which few are
// open at a time, however many files there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "arrays/file_map.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

// The identity of a file: two are equal if it is the same file with the same content, as far as the file system tells.
struct FileIdentity {
  uint64_t device = 0, inode = 0, size_bytes = 0;
  int64_t modified_s = 0, modified_ns = 0;

  static FileIdentity of(const struct stat& found) {
    return {found.st_dev, found.st_ino, static_cast<uint64_t>(found.st_size), found.st_mtim.tv_sec,
            found.st_mtim.tv_nsec};
  }
  bool operator==(const FileIdentity&) const = default;
};

// The file at `path`. Throws sdk::Error (HR_NOT_FOUND, HR_IO).
FileIdentity identify(const std::string& path);

// Each throws sdk::Error with a sentence of what happened and what to do; `code` is errno.
[[noreturn]] void throw_cannot_open(const std::string& path, int code);
[[noreturn]] void throw_changed(const std::string& path);
[[noreturn]] void throw_vanished(const std::string& path);

// One file as it was when it was planned. It is opened when it is needed; when too many are open the least recently
// used one is closed, and opened again when it is needed. All members [any].
class PlannedFile {
 public:
  PlannedFile(std::string path, const FileIdentity& identity) : path_(std::move(path)), identity_(identity) {}
  ~PlannedFile();
  PlannedFile(const PlannedFile&) = delete;
  PlannedFile& operator=(const PlannedFile&) = delete;

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }

  // The file's descriptor, open as long as the result is held. Throws sdk::Error where it cannot be opened. It may be
  // another file by now: use what was read only after require_unchanged().
  std::shared_ptr<const Descriptor> open();

  // Throws sdk::Error where `opened`, from open(), is not the planned file, or has changed since.
  void require_unchanged(const Descriptor& opened);
  // The file's mapping, made by the first call from what open() returned, and kept.
  const FileMap& map(const Descriptor& descriptor);

 private:
  friend class OpenFiles;
  std::string path_;
  FileIdentity identity_;
  std::shared_ptr<const Descriptor> descriptor_;  // guarded by OpenFiles
  std::once_flag mapped_;
  std::optional<FileMap> map_;
};

// Thrown by read_exactly(): `code` is errno, or 0 where the file ends too early.
struct ReadFailure : std::runtime_error {
  explicit ReadFailure(int error_number) : std::runtime_error("read failed"), code(error_number) {}
  int code;
};

// How many files libhdf5, and how many direct reads, may keep open: a quarter of RLIMIT_NOFILE, at most 128.
size_t most_open_files();

// Reads [offset, offset + bytes) of a descriptor, or throws ReadFailure. Where this thread has a PauseListener, it
// first takes what the page cache has, and pauses only if it must wait for the disk. [any]
void read_exactly(int file, uint64_t offset, void* to, uint64_t bytes);

}  // namespace headroom
