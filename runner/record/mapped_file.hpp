// A whole file, readable as memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace headroom {

// Move-only; spans live as long as the object. Error(bad_input, component) naming the path where it cannot be read or
// is no regular file.
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

// Gives the whole pages of a part of a mapping back: they stay in the page cache, and are read again where they are
// asked for. For files that are larger than this process should be.
void drop_pages(std::span<const std::byte> bytes);

}  // namespace headroom
