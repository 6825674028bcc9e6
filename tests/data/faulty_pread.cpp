#include "faulty_pread.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

namespace headroom {
namespace {

std::atomic<const FaultyPread::Read*> in_place{nullptr};

ssize_t read_somehow(int file, void* to, size_t bytes, off_t offset) {
  const FaultyPread::Read* read = in_place.load();
  return read != nullptr ? (*read)(file, to, bytes, offset) : real_pread(file, to, bytes, offset);
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
ssize_t pread_of_test(int file, void* to, size_t bytes, off_t offset) {
  return headroom::read_somehow(file, to, bytes, offset);
}
ssize_t pread64_of_test(int file, void* to, size_t bytes, off_t offset) {
  return headroom::read_somehow(file, to, bytes, offset);
}
}
