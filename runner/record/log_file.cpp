#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

LogFile::LogFile(std::filesystem::path path) : path_(std::move(path)) {
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
  if (length >= length_) return;
  if (::ftruncate(file_, static_cast<off_t>(length)) != 0) throw cannot_write(path_, errno);
  length_ = length;
}

void LogFile::sync() {
  if (::fsync(file_) != 0 && errno != EINVAL) throw cannot_write(path_, errno);
}

}  // namespace headroom
