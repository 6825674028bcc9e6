#include "arrays/file_identity.hpp"

#include <cerrno>
#include <cstring>

#include "headroom/sdk/error.hpp"

namespace headroom {

FileIdentity identify(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) throw_cannot_open(path, errno);
  return FileIdentity::of(found);
}

void throw_cannot_open(const std::string& path, int code) {
  if (code == ENOENT) throw sdk::Error(HR_NOT_FOUND, "'" + path + "' does not exist; check the path");
  const char* advice = code == EACCES || code == EPERM    ? "; make it readable for this user"
                       : code == EMFILE || code == ENFILE ? "; raise the limit of open files (ulimit -n)"
                                                          : "; check the path and the disk";
  throw sdk::Error(HR_IO, "cannot open '" + path + "': " + std::strerror(code) + advice);
}

void throw_changed(const std::string& path) {
  throw sdk::Error(HR_IO, "'" + path + "' was changed or replaced while it was in use; start the run again");
}

void throw_vanished(const std::string& path) {
  throw sdk::Error(HR_NOT_FOUND, "'" + path + "' vanished while it was in use; put it back and start the run again");
}

}  // namespace headroom
