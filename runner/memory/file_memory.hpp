// Files that lie in memory (tmpfs, ramfs: /dev/shm, often /tmp): their pages count in the cgroup of whoever writes
// them, and the kernel cannot drop them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "memory/budget.hpp"

namespace headroom {

// Of a path that need not exist yet: of the nearest folder above it that does. [any]
bool lies_in_memory(const std::filesystem::path& path);

// Leave to write `bytes` there, to keep until they are written; from then on they are part of what the monitor finds
// taken of the room. Always granted on a disk. [any]
Permit make_room_for_file(const std::filesystem::path& path, int64_t bytes);

// What this process has written to such files so far: the writer tells once it is done. [any]
void note_written(const std::filesystem::path& path, int64_t bytes);
int64_t bytes_written_in_memory();

// A folder of the system's for temporary files, on a disk where there is one.
// Error(cannot_write) where $TMPDIR names none.
std::filesystem::path temporary_folder_on_disk();

}  // namespace headroom
