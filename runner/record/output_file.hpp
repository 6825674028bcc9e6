// Writing files. Either the bytes are on the disk, or Error(cannot_write) names the path, the reason and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "error.hpp"

namespace headroom {

// The sentence for a failed write of `path`; `error` is an errno value.
Error cannot_write(const std::filesystem::path& path, int error);

// A new file; an older file of that name is emptied. Every function throws cannot_write(); the destructor only closes.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void finish();  // fsync and close; then the bytes survive a power cut
  // Unlinks the file, so that it disappears when this object or the process ends, however that happens. Returns a path
  // that opens it until then.
  std::filesystem::path take_name();

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// A file that only grows, line by line. Checkpoints store its length, and resuming cuts it back to that length.
class LogFile {
 public:
  explicit LogFile(std::filesystem::path path);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile();

  void line(std::string_view text);     // appends text and '\n' in one write
  void append(std::string_view bytes);  // one write; Error(cannot_write) leaves the file as it was before
  uint64_t length() const { return length_; }
  void truncate(uint64_t length);  // does nothing where the file is shorter
  void sync();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  uint64_t length_ = 0;
};

// Writes all of `bytes` to an open descriptor, through interruptions and short writes.
void write_all(int file, std::span<const std::byte> bytes, const std::filesystem::path& path);

// Whether a rename may replace `path`. A device, a pipe or a link (/dev/null, /dev/stdout) is to be written to instead;
// root would replace it for the whole machine.
bool may_be_replaced(const std::filesystem::path& path);

// Makes renames and new names in `folder` survive a power cut. Does nothing on file systems that cannot.
void sync_folder(const std::filesystem::path& folder);

}  // namespace headroom
