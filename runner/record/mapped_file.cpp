#include "record/mapped_file.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "error.hpp"

namespace headroom {

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view component) {
  const auto refuse = [&](const std::string& what) {
    return Error(Exit::bad_input, component, path.string() + ": " + what);
  };
  // O_NONBLOCK: a named pipe is refused, not waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw refuse(std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  int error = ::fstat(file, &status) == 0 ? 0 : errno;
  void* map = nullptr;
  // mmap() refuses a length of 0, so an empty file has no mapping.
  if (error == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    map = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED) error = errno;
  }
  // The mapping stays without the descriptor.
  ::close(file);
  if (error != 0) throw refuse(std::string("cannot be read: ") + std::strerror(error));
  if (!S_ISREG(status.st_mode)) throw refuse("is not a file");
  bytes_ = {static_cast<const std::byte*>(map), static_cast<size_t>(status.st_size)};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void drop_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page,
             end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace headroom
