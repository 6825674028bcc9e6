// Files that lie in memory (tmpfs, ramfs: /dev/shm, often /tmp). Their pages count in the cgroup of the process that
// writes them, and the kernel cannot drop them. So temporary files lie on a disk where there is one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "memory/budget.hpp"

namespace headroom {

// Whether `path` is on such a file system. Where it does not exist yet, the nearest folder above it decides. [any]
bool lies_in_memory(const std::filesystem::path& path);
bool lies_in_memory(int file);  // one that is open [any]

// Permission to write `bytes` there, to keep until they are written; from then on they are part of what the monitor
// finds taken of the room. Always granted on a disk. [any]
Permit make_room_for_file(const std::filesystem::path& path, int64_t bytes);

// What such files of this process hold: who writes them tells once it is done, and, with bytes below 0, who removes
// them. [any]
void note_written(const std::filesystem::path& path, int64_t bytes);
int64_t bytes_written_in_memory();

// A folder of the system's for temporary files, on a disk where there is one.
// Error(cannot_write) where $TMPDIR names none.
std::filesystem::path temporary_folder_on_disk();

// A folder for temporary files that goes with its owner. Made in temporary_folder_on_disk(); removed at the end of the
// scope with all that is in it. [control]
class ScratchFolder {
 public:
  // `owner` is part of its name and the component of the Error(cannot_write).
  explicit ScratchFolder(const std::string& owner);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom
