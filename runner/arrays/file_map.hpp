// Files read through mappings instead of copies by the kernel: half the price for data that is in the page cache.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// Before the first file is mapped: a page of a map that has no bytes behind it then ends what reads it, not the
// process. [any]
void handle_bus_errors();

// A file's bytes, mapped as a whole. const members from any thread.
class FileMap {
 public:
  FileMap() = default;  // maps nothing: at() is NULL
  // Nor where the system refuses.
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
  uint64_t bytes_ = 0;
};

// Calls use(context). False where memory of a map could not be had after all: the file became shorter, or its disk
// failed. `use` is left in the middle then: nothing in it may need its destructor.
bool read_mapped(void (*use)(const void* context), const void* context);

}  // namespace headroom
