// pread() of this test program, libhdf5 included, goes through here: what a disk, a network or a signal does to it.
#pragma once

#include <cstdint>
#include <functional>
#include <sys/types.h>

namespace headroom {

ssize_t real_pread(int file, void* to, size_t bytes, off_t offset);

// While it lives, its function stands for pread() on every thread. One at a time.
class FaultyPread {
 public:
  using Read = std::function<ssize_t(int file, void* to, size_t bytes, off_t offset)>;
  explicit FaultyPread(Read read);
  ~FaultyPread();
  FaultyPread(const FaultyPread&) = delete;
  FaultyPread& operator=(const FaultyPread&) = delete;

 private:
  Read read_;
};

// What touches [begin, end) fails with `code`; 0: the file seems to end at `begin`.
FaultyPread::Read failing_at(uint64_t begin, uint64_t end, int code);

}  // namespace headroom
