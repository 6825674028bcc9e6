// The files that are read without libhdf5: few descriptors for any number of files.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "arrays/file_identity.hpp"
#include "arrays/file_map.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

// One file as it was when it was planned. Its descriptor opens when it is needed; of many files the one unused for
// longest is closed, and opens again by itself. All members from any thread.
class PlannedFile {
 public:
  PlannedFile(std::string path, const FileIdentity& identity) : path_(std::move(path)), identity_(identity) {}
  ~PlannedFile();
  PlannedFile(const PlannedFile&) = delete;
  PlannedFile& operator=(const PlannedFile&) = delete;

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }

  // Stays open while the result is held. Throws sdk::Error when the file is not there. What has been read counts once
  // require_unchanged() returned.
  std::shared_ptr<const Descriptor> open();

  // Throws sdk::Error when what open() gave is no longer the planned file.
  void require_unchanged(const Descriptor& opened);
  // Made by the first call and kept; `descriptor` is what open() gave.
  const FileMap& map(const Descriptor& descriptor);

 private:
  friend class OpenFiles;
  std::string path_;
  FileIdentity identity_;
  std::shared_ptr<const Descriptor> descriptor_;  // guarded by OpenFiles
  std::once_flag mapped_;
  std::optional<FileMap> map_;
};

// The bytes are not to be had: `code` is errno, 0 where the file ends before them.
struct ReadFailure : std::runtime_error {
  explicit ReadFailure(int error_number) : std::runtime_error("read failed"), code(error_number) {}
  int code;
};

// How many files one part of this process may hold open: a quarter of its limit, and at most 128.
size_t most_open_files();

// All of [offset, offset + bytes), or ReadFailure.
void read_exactly(int file, uint64_t offset, void* to, uint64_t bytes);

}  // namespace headroom
