#include "record/torch_zip.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <zlib.h>

#include "memory/readable.hpp"

namespace headroom {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void cut_off() { throw BadTorchFile("is cut off or damaged: its zip directory does not fit the file"); }

// Every read goes through it: offsets and sizes come from the file and must not lead outside of it.
Bytes part(Bytes bytes, uint64_t at, uint64_t count) {
  if (at > bytes.size() || count > bytes.size() - at) cut_off();
  return bytes.subspan(at, count);
}

template <class T>
T number(Bytes bytes, uint64_t at) {
  T value;
  std::memcpy(&value, part(bytes, at, sizeof value).data(), sizeof value);
  return value;
}

// Marks and lengths of the records in PKWARE's APPNOTE.TXT, 4.3.7 to 4.3.16. Numbers are little-endian.
constexpr uint32_t local_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50, end64_mark = 0x06064b50,
                   locator_mark = 0x07064b50;
constexpr uint64_t end_bytes = 22, locator_bytes = 20, entry_bytes = 46, longest_comment = 65535;

struct Directory {
  uint64_t entries = 0, offset = 0;
};

Directory find_directory(Bytes file) {
  // The end record stands last but for a comment of any length, so it is looked for from the end backwards.
  for (uint64_t back = end_bytes; back <= std::min<uint64_t>(file.size(), end_bytes + longest_comment); ++back) {
    const uint64_t at = file.size() - back;
    if (number<uint32_t>(file, at) != end_mark) continue;
    Directory found{number<uint16_t>(file, at + 10), number<uint32_t>(file, at + 16)};
    // A zip64 archive has a locator directly before it, which leads to a record with wider fields.
    if (at >= locator_bytes && number<uint32_t>(file, at - locator_bytes) == locator_mark) {
      const auto end64 = number<uint64_t>(file, at - locator_bytes + 8);
      if (number<uint32_t>(file, end64) != end64_mark) cut_off();
      found = {number<uint64_t>(file, end64 + 32), number<uint64_t>(file, end64 + 48)};
    }
    return found;
  }
  cut_off();
}

struct Place {
  uint64_t stored = 0, bytes = 0, local = 0;
};

// Sizes too large for 32 bits stand in the entry's extra field 1, those alone, in this order.
void take_wide(Bytes extra, Place& place) {
  constexpr uint64_t told_wide = 0xFFFFFFFF;
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const auto id = number<uint16_t>(extra, at), count = number<uint16_t>(extra, at + 2);
    if (id == 1) {
      const Bytes wide = part(extra, at + 4, count);
      uint64_t next = 0;
      for (uint64_t* value : {&place.bytes, &place.stored, &place.local}) {
        if (*value != told_wide) continue;
        *value = number<uint64_t>(wide, next);
        next += 8;
      }
      return;
    }
    at += 4 + uint64_t{count};
  }
}

// By the local header's own lengths: torch.save pads its extra field to align the data, the directory's it does not.
Bytes data_of(Bytes file, const Place& place) {
  if (number<uint32_t>(file, place.local) != local_mark) cut_off();
  const uint64_t name = number<uint16_t>(file, place.local + 26), extra = number<uint16_t>(file, place.local + 28);
  return part(file, place.local + 30 + name + extra, place.stored);
}

}  // namespace

std::map<std::string, ZipEntry> read_zip(Bytes file, bool may_be_deflated) {
  const Directory directory = find_directory(file);
  std::map<std::string, ZipEntry> entries;
  uint64_t at = directory.offset;
  // Each entry takes at least so many bytes: a larger count is damage.
  if (directory.entries > file.size() / entry_bytes) cut_off();
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (number<uint32_t>(file, at) != entry_mark) cut_off();
    const auto flags = number<uint16_t>(file, at + 8), method = number<uint16_t>(file, at + 10);
    Place place{number<uint32_t>(file, at + 20), number<uint32_t>(file, at + 24), number<uint32_t>(file, at + 42)};
    const uint64_t name = number<uint16_t>(file, at + 28), extra = number<uint16_t>(file, at + 30),
                   comment = number<uint16_t>(file, at + 32);
    const Bytes text = part(file, at + entry_bytes, name);
    const std::string called(reinterpret_cast<const char*>(text.data()), text.size());
    take_wide(part(file, at + entry_bytes + name, extra), place);
    const std::string shown = "its entry '" + printable(called, 100) + "'";
    // Bit 0 of the flags: encrypted. Method 0: stored; 8: deflated.
    const bool deflated = may_be_deflated && method == 8;
    if ((flags & 1u) != 0 || !(deflated || (method == 0 && place.stored == place.bytes))) {
      throw BadTorchFile(shown + (may_be_deflated
                                      ? " is encrypted, or compressed by another method than deflate"
                                      : " is compressed or encrypted; torch.save stores entries as they are"));
    }
    const ZipEntry entry{data_of(file, place), number<uint32_t>(file, at + 16), deflated, place.bytes};
    if (!entries.emplace(called, entry).second) throw BadTorchFile(shown + " is there twice");
    at += entry_bytes + name + extra + comment;
  }
  return entries;
}

void ZipEntry::verify(const std::string& name) const {
  // zlib counts in uInt, 32 bits.
  constexpr std::size_t at_once = 1 << 30;
  uLong sum = crc32(0, nullptr, 0);
  for (std::size_t at = 0; at < data.size(); at += at_once) {
    const std::size_t count = std::min(at_once, data.size() - at);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(data.data() + at), static_cast<uInt>(count));
  }
  if (sum != crc) throw BadTorchFile("is damaged: the checksum of its entry '" + printable(name, 100) + "' is another");
}

}  // namespace headroom
