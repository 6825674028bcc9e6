#include "faulty_pread.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace headroom {
namespace {

std::atomic<const FaultyPread::Read*> in_place{nullptr};

ssize_t read_somehow(int file, void* to, size_t bytes, off_t offset) {
  const FaultyPread::Read* read = in_place.load();
  return read != nullptr ? (*read)(file, to, bytes, offset) : real_pread(file, to, bytes, offset);
}

// Nothing is in the page cache while something stands for pread().
ssize_t read_cached(int file, const iovec* pieces, int count, off_t offset, int flags) {
  if (in_place.load() == nullptr) return syscall(SYS_preadv2, file, pieces, count, offset, 0L, flags);
  errno = EAGAIN;
  return -1;
}

}  // namespace

ssize_t real_pread(int file, void* to, size_t bytes, off_t offset) {
  return syscall(SYS_pread64, file, to, bytes, offset);
}

FaultyPread::FaultyPread(Read read) : read_(std::move(read)) { in_place = &read_; }
FaultyPread::~FaultyPread() { in_place = nullptr; }

FaultyPread::Read failing_at(uint64_t begin, uint64_t end, int code) {
  return [=](int file, void* to, size_t bytes, off_t offset) -> ssize_t {
    const auto from = static_cast<uint64_t>(offset);
    if (from >= end || from + bytes <= begin) return real_pread(file, to, bytes, offset);
    if (code == 0) return real_pread(file, to, std::min<size_t>(bytes, begin - std::min(begin, from)), offset);
    errno = code;
    return -1;
  };
}

}  // namespace headroom

// The program's own definitions win over the C library's, for shared libraries too.
extern "C" {
ssize_t pread_of_test(int file, void* to, size_t bytes, off_t offset) __asm__("pread");
ssize_t pread64_of_test(int file, void* to, size_t bytes, off_t offset) __asm__("pread64");
ssize_t preadv2_of_test(int file, const iovec* pieces, int count, off_t offset, int flags) __asm__("preadv2");
ssize_t preadv64v2_of_test(int file, const iovec* pieces, int count, off_t offset, int flags) __asm__("preadv64v2");
ssize_t pread_of_test(int file, void* to, size_t bytes, off_t offset) {
  return headroom::read_somehow(file, to, bytes, offset);
}
ssize_t pread64_of_test(int file, void* to, size_t bytes, off_t offset) {
  return headroom::read_somehow(file, to, bytes, offset);
}
ssize_t preadv2_of_test(int file, const iovec* pieces, int count, off_t offset, int flags) {
  return headroom::read_cached(file, pieces, count, offset, flags);
}
ssize_t preadv64v2_of_test(int file, const iovec* pieces, int count, off_t offset, int flags) {
  return headroom::read_cached(file, pieces, count, offset, flags);
}
}
