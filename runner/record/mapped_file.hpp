// A whole file, readable as memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace headroom {

// Move-only. Spans are valid as long as the object. Error(bad_input, component), naming the path, where it cannot be
// read or is not a regular file.
class MappedFile {
 public:
  MappedFile(const std::filesystem::path& path, std::string_view component);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Releases the whole pages of a part of a mapping. They stay in the page cache, and are read again on the next access.
// For files larger than this process may be.
void drop_pages(std::span<const std::byte> bytes);

}  // namespace headroom
