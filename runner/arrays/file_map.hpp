// Files read through memory mappings. For data in the page cache that is half the price of pread(): one copy less.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// Installs the handler of SIGBUS, once. The kernel raises SIGBUS where a mapped page has no bytes behind it: the file
// was truncated, or the disk failed. Inside read_mapped() that ends the read; elsewhere the earlier handler gets it.
// Call it before the first file is mapped. [any]
void handle_bus_errors();

// A file mapped as a whole, read-only. const members [any].
class FileMap {
 public:
  FileMap() = default;  // maps nothing: at() returns NULL
  // Maps the first `bytes` bytes of a descriptor, which may be closed afterwards. Where mmap() fails it maps nothing;
  // nor does it map a file on a tmpfs, whose mapped pages would count as held by this process (RssShmem).
  FileMap(int file, uint64_t bytes);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  bool is_there() const { return memory_ != nullptr; }

  // The bytes [offset, offset + bytes) of the file where all of them are in the page cache (mincore()); else NULL, and
  // pread() is the better way: a page fault reads ahead less. Dereference it inside of read_mapped() only.
  const std::byte* at(uint64_t offset, uint64_t bytes) const;

 private:
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

// Calls use(context). Returns false where a mapped page could not be read: the file became shorter, or its disk failed.
// `use` is then left by siglongjmp(): nothing in it may need a destructor, hold a lock or allocate. Does not nest.
// [any]
bool read_mapped(void (*use)(const void* context), const void* context);

}  // namespace headroom
