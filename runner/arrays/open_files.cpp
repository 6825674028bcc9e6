#include "arrays/open_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <list>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unordered_map>

#include "arrays/read_hooks.hpp"
#include "headroom/sdk/error.hpp"
#include "mutex.hpp"

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

size_t most_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return std::clamp<size_t>(limit.rlim_cur / 4, 1, 128);
}

// The open descriptors of all PlannedFiles, in the order of their last use. A descriptor that is closed here stays open
// for those that hold it.
class OpenFiles {
 public:
  std::shared_ptr<const Descriptor> use(PlannedFile& file) {
    const MutexLock lock(mutex_);
    if (file.descriptor_ != nullptr) {
      recent_.splice(recent_.begin(), recent_, place_[&file]);
      return file.descriptor_;
    }
    while (recent_.size() >= most_open_files()) close(*recent_.back());
    int number = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    while (number < 0 && (errno == EMFILE || errno == ENFILE) && !recent_.empty()) {  // others hold descriptors too
      close(*recent_.back());
      number = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    }
    if (number < 0 && errno == ENOENT) throw_vanished(file.path());
    if (number < 0) throw_cannot_open(file.path(), errno);
    file.descriptor_ = std::make_shared<const Descriptor>(number);
    recent_.push_front(&file);
    place_[&file] = recent_.begin();
    return file.descriptor_;
  }

  void forget(PlannedFile& file) {
    const MutexLock lock(mutex_);
    if (file.descriptor_ != nullptr) close(file);
  }

 private:
  void close(PlannedFile& file) REQUIRES(mutex_) {
    const auto at = place_.find(&file);
    recent_.erase(at->second);
    place_.erase(at);
    file.descriptor_ = nullptr;
  }

  Mutex mutex_;                                        // of PlannedFile::descriptor_ too
  std::list<PlannedFile*> recent_ GUARDED_BY(mutex_);  // used last: first
  std::unordered_map<const PlannedFile*, std::list<PlannedFile*>::iterator> place_ GUARDED_BY(mutex_);
};

namespace {

OpenFiles& open_files() {
  static auto* files = new OpenFiles;  // arrays may close until the process ends
  return *files;
}

}  // namespace

PlannedFile::~PlannedFile() { open_files().forget(*this); }

std::shared_ptr<const Descriptor> PlannedFile::open() { return open_files().use(*this); }

void PlannedFile::require_unchanged(const Descriptor& opened) {
  struct stat found {};
  if (fstat(opened.get(), &found) != 0) throw_cannot_open(path_, errno);
  if (FileIdentity::of(found) == identity_) return;
  // So that the next open() looks at the path again, and not at this descriptor.
  open_files().forget(*this);
  throw_changed(path_);
}

const FileMap& PlannedFile::map(const Descriptor& descriptor) {
  // The mapping stays valid when the descriptor is closed.
  std::call_once(mapped_, [&] { map_.emplace(descriptor.get(), identity_.size_bytes); });
  return *map_;
}

namespace {

// What is left of a read.
struct Wanted {
  int file;
  uint64_t offset;
  char* to;
  uint64_t bytes;

  void advance(ssize_t read) {
    offset += static_cast<uint64_t>(read);
    to += read;
    bytes -= static_cast<uint64_t>(read);
  }
  iovec piece() const {
    // Below what Linux transfers in one call (0x7FFFF000 bytes, read(2)).
    constexpr uint64_t most_at_once = 1 << 30;
    return {to, std::min(bytes, most_at_once)};
  }
};

// Reads as far as the page cache has it. False where kernel or file system lack RWF_NOWAIT.
bool read_what_is_cached(Wanted& wanted) {
  while (wanted.bytes > 0) {
    const iovec piece = wanted.piece();
    const ssize_t read = ::preadv2(wanted.file, &piece, 1, static_cast<off_t>(wanted.offset), RWF_NOWAIT);
    if (read < 0 && errno == EINTR) continue;
    // EAGAIN: the next byte is not in the page cache.
    if (read < 0 && errno != EAGAIN) return false;
    if (read <= 0) return true;
    wanted.advance(read);
  }
  return true;
}

void read_all(Wanted& wanted) {
  while (wanted.bytes > 0) {
    const iovec piece = wanted.piece();
    const ssize_t read = ::pread(wanted.file, piece.iov_base, piece.iov_len, static_cast<off_t>(wanted.offset));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) throw ReadFailure(read < 0 ? errno : 0);
    wanted.advance(read);
  }
}

}  // namespace

void read_exactly(int file, uint64_t offset, void* to, uint64_t bytes) {
  Wanted wanted{file, offset, static_cast<char*>(to), bytes};
  // Without a listener there is no use in knowing what the page cache has.
  if (!Pause::is_listened_to() || !read_what_is_cached(wanted)) return read_all(wanted);
  if (wanted.bytes == 0) return;
  const Pause pause(PauseFor::disk);
  read_all(wanted);
}

}  // namespace headroom
