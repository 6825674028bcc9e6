#include "arrays/hdf5_output.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>

#include "memory/descriptor.hpp"

namespace headroom {

namespace {

std::string cause(const std::string& reason) {
  const int code = errno_of(reason);
  if (code == ENOSPC) return "the disk is full; check the space of its folder";
  if (code == EFBIG) return "the limit on file sizes is too low (see `ulimit -f`)";
  return reason + "; check the space and the permissions of its folder";
}

void sync_path(const std::filesystem::path& path, int flags) {
  const Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() >= 0 && fsync(file.get()) == 0) return;
  if (errno == EINVAL) return;  // a file system that cannot
  throw CannotWrite("cannot write " + in_quotes(path.string()) + " to the disk: " + std::strerror(errno) +
                    "; check the disk");
}

}  // namespace

void throw_cannot_write(const std::filesystem::path& path, const std::string& action) {
  throw CannotWrite("cannot write " + in_quotes(path.string()) + " (" + action + "): " + cause(hdf5_reason()));
}

void put_in_place(const std::filesystem::path& partial, const std::filesystem::path& path) {
  sync_path(partial, O_RDONLY);
  std::error_code failed;
  std::filesystem::rename(partial, path, failed);
  if (failed) throw CannotWrite("cannot put " + in_quotes(path.string()) + " in place: " + failed.message());
  sync_path(path.has_parent_path() ? path.parent_path() : ".", O_RDONLY | O_DIRECTORY);
}

}  // namespace headroom
