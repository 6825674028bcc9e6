// Writing so that it either is on the disk or is an Error(cannot_write) that names the path, the reason and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "error.hpp"

namespace headroom {

// The sentence for a failed write of `path`; `error` is an errno value.
Error cannot_write(const std::filesystem::path& path, int error);

// A new file (an older one of that name is emptied). Every function throws cannot_write(); the destructor only closes.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void finish();  // fsync and close: after it the bytes survive a power cut
  // Takes the name away, so that the file goes with this object, or with the process, however that ends. Where it can
  // be opened until then.
  std::filesystem::path take_name();

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// A file that only grows, a line at a time; its length goes into checkpoints and it is cut back on resume.
class LogFile {
 public:
  explicit LogFile(std::filesystem::path path);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile();

  void line(std::string_view text);     // appends text and '\n' in one write
  void append(std::string_view bytes);  // one write; Error(cannot_write) leaves the file as it was before
  uint64_t length() const { return length_; }
  void truncate(uint64_t length);  // a longer length than the file's leaves it alone
  void sync();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  uint64_t length_ = 0;
};

// Everything of `bytes` to an open descriptor, through interruptions and short writes.
void write_all(int file, std::span<const std::byte> bytes, const std::filesystem::path& path);

// Whether a rename may put a file in the place of `path`. Into a device, a pipe or a link, as /dev/null and
// /dev/stdout, a user wants to write; root would replace it for the whole machine.
bool may_be_replaced(const std::filesystem::path& path);

// Makes renames and new names inside `folder` survive a power cut. File systems that cannot do that are left alone.
void sync_folder(const std::filesystem::path& folder);

}  // namespace headroom
