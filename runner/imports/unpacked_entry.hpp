// An entry of a zip archive, readable as memory.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "record/mapped_file.hpp"
#include "record/output_file.hpp"
#include "record/torch_zip.hpp"

namespace headroom {

class UnpackedEntry {
 public:
  // A stored entry is taken where it lies, as long as the archive is there; a deflated one is unpacked into a file
  // without a name, beside `near`. Its checksum is compared. Throws sdk::Error, Error(cannot_write).
  UnpackedEntry(const std::string& name, const ZipEntry& entry, const std::filesystem::path& near);
  std::span<const std::byte> bytes() const { return unpacked_ ? unpacked_->bytes() : stored_; }

 private:
  void unpack(const std::string& name, const ZipEntry& entry, const std::filesystem::path& path);

  std::span<const std::byte> stored_;
  std::optional<OutputFile> file_;
  std::optional<MappedFile> unpacked_;
};

}  // namespace headroom
