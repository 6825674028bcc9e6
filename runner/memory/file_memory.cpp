#include "memory/file_memory.hpp"

#include <atomic>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "error.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

constexpr unsigned long zfs_magic = 0x2FC12FC1;  // not in linux/magic.h

Storage storage_of(const struct statfs& status) {
  switch (static_cast<unsigned long>(status.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return Storage::memory;
    case EXT4_SUPER_MAGIC:  // and ext2, 3
    case XFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
      return Storage::disk;
    case BTRFS_SUPER_MAGIC:
    case zfs_magic:
      return Storage::copy_on_write;
    default:
      return Storage::other;
  }
}

}  // namespace

bool lies_in_memory(int file) {
  struct statfs status {};
  return fstatfs(file, &status) == 0 && storage_of(status) == Storage::memory;
}

Storage storage_of(const fs::path& path) {
  std::error_code error;
  fs::path place = fs::absolute(path, error);
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  struct statfs status {};
  return statfs(place.c_str(), &status) == 0 ? storage_of(status) : Storage::other;
}

bool lies_in_memory(const fs::path& path) { return storage_of(path) == Storage::memory; }

namespace {

std::atomic<int64_t> written_in_memory{0};

}  // namespace

void note_written(const fs::path& path, int64_t bytes) {
  if (lies_in_memory(path)) written_in_memory += bytes;
}

int64_t bytes_written_in_memory() { return written_in_memory; }

Permit make_room_for_file(const fs::path& path, int64_t bytes) {
  return lies_in_memory(path) ? make_room(bytes) : Permit(0);
}

fs::path temporary_folder_on_disk() {
  std::error_code error;
  const fs::path usual = fs::temp_directory_path(error);
  if (error) throw Error(Exit::cannot_write, "memory", "there is no folder for temporary files: " + error.message());
  for (const fs::path& folder : {usual, fs::path("/var/tmp"), fs::current_path(error)}) {
    if (!folder.empty() && !lies_in_memory(folder) && access(folder.c_str(), W_OK | X_OK) == 0) return folder;
  }
  return usual;
}

ScratchFolder::ScratchFolder(const std::string& owner) {
  const fs::path place = temporary_folder_on_disk();
  std::string pattern = (place / ("headroom-" + owner + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(Exit::cannot_write, owner, "cannot make a folder in " + place.string());
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace headroom
