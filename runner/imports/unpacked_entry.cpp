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
  if (bytes != entry.bytes || sum != entry.crc)
    throw sdk::Error(HR_DATA_CORRUPT, "the checksum of its entry '" + printable(name, 100) +
                                          "' is another; the file is damaged: copy it again");
  unpacked_.emplace(nameless, "data convert");
}

UnpackedEntry::UnpackedEntry(const std::string& name, const ZipEntry& entry, const std::filesystem::path& near) {
  if (entry.deflated) {
    unpack(name, entry, near.parent_path() / ("." + near.filename().string() + ".partial-" + own_suffix()));
    return;
  }
  stored_ = entry.data;
  try {
    entry.verify(name);
  } catch (const BadTorchFile& problem) {
    throw sdk::Error(HR_DATA_CORRUPT, std::string("it ") + problem.what());
  }
}

}  // namespace headroom
