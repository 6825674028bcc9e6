// Files that are in memory (tmpfs, ramfs: /dev/shm, often /tmp). Their pages count in the cgroup of the process that
// writes them, and the kernel cannot drop them. So temporary files are put on a disk where there is one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "memory/budget.hpp"

namespace headroom {

// What a file system keeps its files in.
enum class Storage {
  memory,         // tmpfs, ramfs
  disk,           // of this machine
  copy_on_write,  // the same, where each change of a file takes new room: btrfs, ZFS
  other,          // perhaps shared with other machines, as NFS or FUSE
};
// Of `path`. Where it does not exist yet, the nearest folder above it decides. [any]
Storage storage_of(const std::filesystem::path& path);
bool lies_in_memory(const std::filesystem::path& path);
bool lies_in_memory(int file);  // one that is open [any]

// Permission to write `bytes` there; keep it until they are written. After that the monitor sees them as taken memory.
// Always granted on a disk. [any]
Permit make_room_for_file(const std::filesystem::path& path, int64_t bytes);

// What such files of this process hold. Call note_written() after writing, and with negative bytes after removing.
// [any]
void note_written(const std::filesystem::path& path, int64_t bytes);
int64_t bytes_written_in_memory();

// The system's folder for temporary files, on a disk where there is one. Error(cannot_write) where $TMPDIR is not a
// folder.
std::filesystem::path temporary_folder_on_disk();

// A folder for temporary files in temporary_folder_on_disk(); removed with its contents at the end of the scope.
// [control]
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
