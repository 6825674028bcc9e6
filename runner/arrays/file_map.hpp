// Files read through mappings instead of copies by the kernel: half the price for data that is in the page cache.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// [control] Whether files that are opened from here on are read through mappings where their bytes are in the page
// cache (`data.memory_map`); not, unless told.
void map_files(bool wanted);

// A file's bytes, mapped as a whole. const members from any thread.
class FileMap {
 public:
  // Nothing is mapped where that was not wanted or the system refuses: at() is NULL then.
  FileMap(int file, uint64_t bytes);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  bool is_there() const { return memory_ != nullptr; }

  // [offset, offset + bytes) of the file where all of it is in the page cache; else NULL. Look at it inside of
  // read_mapped().
  const std::byte* at(uint64_t offset, uint64_t bytes) const;

 private:
  std::byte* memory_ = nullptr;
  uint64_t bytes_;
};

// Calls use(context). False where memory of a map could not be had after all: the file became shorter, or its disk
// failed. `use` is left in the middle then: nothing in it may need its destructor.
bool read_mapped(void (*use)(const void* context), const void* context);

}  // namespace headroom
