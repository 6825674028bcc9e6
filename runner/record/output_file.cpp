#include "record/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace headroom {

namespace {

// What can be done about it; "" where the reason says it all.
std::string_view advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there or choose another folder with --out";
    case EFBIG:
      return "; the limit on file sizes is too low (see `ulimit -f`)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; make it writable or choose another folder with --out";
    case ENOENT:
    case ENOTDIR:
      return "; its folder was removed or is not a folder";
    default:
      return "";
  }
}

}  // namespace

Error cannot_write(const std::filesystem::path& path, int error) {
  std::string reason = std::strerror(error);
  return Error(Exit::cannot_write, "record", path.string() + " cannot be written: " + reason.append(advice(error)));
}

void write_all(int file, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  // In pieces, because a write of more than 2 GiB is cut short by Linux and a signal should not wait for gigabytes.
  constexpr size_t piece = size_t{8} << 20;
  while (!bytes.empty()) {
    ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), piece));
    if (written < 0) {
      if (errno == EINTR) continue;
      throw cannot_write(path, errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) throw cannot_write(path_, errno);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
}

void OutputFile::write(std::span<const std::byte> bytes) { write_all(file_, bytes, path_); }

std::filesystem::path OutputFile::take_name() {
  if (::unlink(path_.c_str()) != 0) throw cannot_write(path_, errno);
  return "/proc/self/fd/" + std::to_string(file_);
}

void OutputFile::finish() {
  // EINVAL: what cannot be synced, as a pipe (fsync(2)).
  if (::fsync(file_) != 0 && errno != EINVAL) throw cannot_write(path_, errno);
  // close() may tell of a late write error. After EINTR Linux has closed the descriptor: there is no second try.
  if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) throw cannot_write(path_, errno);
}

bool may_be_replaced(const std::filesystem::path& path) {
  using std::filesystem::file_type;
  std::error_code error;
  const file_type type = std::filesystem::symlink_status(path, error).type();
  return type != file_type::symlink && type != file_type::character && type != file_type::block &&
         type != file_type::fifo && type != file_type::socket;
}

void sync_folder(const std::filesystem::path& folder) {
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) throw cannot_write(folder, errno);
  int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  if (error != 0 && error != EINVAL) throw cannot_write(folder, error);
}

LogFile::LogFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_APPEND: writes go to the end, also after the file was cut.
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) {
    const int error = errno;
    if (file_ >= 0) ::close(file_);
    throw cannot_write(path_, error);
  }
  length_ = static_cast<uint64_t>(status.st_size);
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), length_(std::exchange(other.length_, 0)) {}

LogFile::~LogFile() {
  if (file_ >= 0) ::close(file_);
}

void LogFile::line(std::string_view text) { append(std::string(text) + '\n'); }

void LogFile::append(std::string_view bytes) {
  try {
    write_all(file_, std::as_bytes(std::span(bytes)), path_);
  } catch (const Error&) {
    // A torn line would spoil the file for every reader. When even this fails, the error already says why.
    [[maybe_unused]] int cut = ::ftruncate(file_, static_cast<off_t>(length_));
    throw;
  }
  length_ += bytes.size();
}

void LogFile::truncate(uint64_t length) {
  // Never longer: ftruncate() would fill up with zeros.
  if (length >= length_) return;
  if (::ftruncate(file_, static_cast<off_t>(length)) != 0) throw cannot_write(path_, errno);
  length_ = length;
}

void LogFile::sync() {
  if (::fsync(file_) != 0 && errno != EINVAL) throw cannot_write(path_, errno);
}

}  // namespace headroom
