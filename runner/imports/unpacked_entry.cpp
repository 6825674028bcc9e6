#include "imports/unpacked_entry.hpp"

#include <algorithm>
#include <new>
#include <vector>
#include <zlib.h>

#include "headroom/sdk/error.hpp"
#include "memory/readable.hpp"
#include "own_suffix.hpp"

namespace headroom {

namespace {

constexpr size_t unpack_buffer_bytes = 1 << 20;

// zlib's stream of one entry; ends itself.
class Inflater {
 public:
  explicit Inflater(const ZipEntry& entry) : rest_(entry.data) {
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // negative: without zlib's own header
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // As many bytes as there are, {} at the end; nullopt where the stream is damaged.
  std::optional<std::span<const std::byte>> next(std::vector<std::byte>& buffer) {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(buffer.size());
    while (!ended_ && stream_.avail_out > 0) {
      const size_t given = std::min(rest_.size(), unpack_buffer_bytes);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));
      stream_.avail_in = static_cast<uInt>(given);
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      drop_pages(rest_.first(given - stream_.avail_in));
      rest_ = rest_.subspan(given - stream_.avail_in);
      ended_ = code == Z_STREAM_END;
      if (code != Z_OK && code != Z_STREAM_END) return std::nullopt;
    }
    return std::span(buffer).first(buffer.size() - stream_.avail_out);
  }

 private:
  std::span<const std::byte> rest_;
  z_stream stream_{};
  bool ended_ = false;
};

[[noreturn]] void throw_other_checksum(const std::string& name) {
  throw sdk::Error(HR_DATA_CORRUPT, "the checksum of its entry '" + printable(name, 100) +
                                        "' is another; the file is damaged: copy it again");
}

}  // namespace

void UnpackedEntry::unpack(const std::string& name, const ZipEntry& entry, const std::filesystem::path& path) {
  file_.emplace(path);
  const std::filesystem::path nameless = file_->take_name();
  std::vector<std::byte> buffer(unpack_buffer_bytes);
  Inflater inflater(entry);
  uint64_t bytes = 0;
  uLong sum = ::crc32(0, nullptr, 0);
  while (true) {
    const auto block = inflater.next(buffer);
    bytes += block ? block->size() : 0;
    if (!block || bytes > entry.bytes)
      throw sdk::Error(HR_DATA_CORRUPT, "its entry '" + printable(name, 100) + "' is damaged; copy the file again");
    if (block->empty()) break;
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(block->data()), block->size());
    file_->write(*block);
  }
  if (bytes != entry.bytes || sum != entry.crc) throw_other_checksum(name);
  unpacked_.emplace(nameless, "data convert");
}

UnpackedEntry::UnpackedEntry(const std::string& name, const ZipEntry& entry, const std::filesystem::path& near) {
  if (entry.deflated) {
    unpack(name, entry, near.parent_path() / ("." + near.filename().string() + ".partial-" + own_suffix()));
    return;
  }
  stored_ = entry.data;
  uLong sum = ::crc32(0, nullptr, 0);
  for (size_t at = 0; at < stored_.size(); at += unpack_buffer_bytes) {
    const auto part = stored_.subspan(at, std::min(unpack_buffer_bytes, stored_.size() - at));
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
    drop_pages(part);
  }
  if (sum != entry.crc) throw_other_checksum(name);
}

}  // namespace headroom
