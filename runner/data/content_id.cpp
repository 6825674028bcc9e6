// The content id of a source's files.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>

#include "data/normalizer.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

namespace {

constexpr uint64_t edge_bytes = 64 << 10;

// 128 bits against accidents, not against attackers: two lanes of multiply and fold over 8-byte words.
class Hash {
 public:
  void add(const void* data, uint64_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (; bytes >= 8; at += 8, bytes -= 8) word(load(at, 8));
    if (bytes > 0) word(load(at, bytes));
  }
  void add(uint64_t value) { word(value); }
  void add(std::string_view text) {  // with its length, so that neighbours never run together
    word(text.size());
    add(text.data(), text.size());
  }
  std::string hex() {
    for (int i = 0; i < 4; ++i) word(0);
    std::string digits;
    for (const uint64_t lane : lanes_) {
      for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[lane >> shift & 15];
    }
    return digits;
  }

 private:
  static uint64_t load(const unsigned char* at, uint64_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  }
  void word(uint64_t value) {
    lanes_[0] = fold((lanes_[0] ^ value) * 0x9E3779B97F4A7C15u);
    lanes_[1] = fold((lanes_[1] + value) * 0xC2B2AE3D27D4EB4Fu ^ lanes_[0]);
  }
  static uint64_t fold(uint64_t value) { return value ^ value >> 29; }

  std::array<uint64_t, 2> lanes_{0x68656164726F6F6Du, 0x636F6E74656E7431u};
};

[[noreturn]] void cannot_read(const std::string& path) {
  throw Error(Exit::data, "data",
              "cannot read '" + path + "': " + std::strerror(errno) + "; check the path and its permissions");
}

void add_part(Hash& hash, int file, const std::string& path, uint64_t offset, uint64_t bytes) {
  std::vector<char> part(bytes);
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = pread(file, part.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path);
    if (got == 0)
      throw Error(Exit::data, "data", "'" + path + "' became shorter while it was read; start the run again");
    done += static_cast<uint64_t>(got);
  }
  hash.add(part.data(), bytes);
}

void add_file(Hash& hash, const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found;
  if (file.get() < 0 || fstat(file.get(), &found) != 0) cannot_read(path.string());
  const auto size = static_cast<uint64_t>(found.st_size);
  hash.add(size);
  add_part(hash, file.get(), path.string(), 0, std::min(size, edge_bytes));
  if (size > edge_bytes)
    add_part(hash, file.get(), path.string(), size - std::min(size - edge_bytes, edge_bytes),
             std::min(size - edge_bytes, edge_bytes));
}

// The folder all files lie in.
std::filesystem::path common_folder(const std::vector<std::filesystem::path>& files) {
  std::filesystem::path common = files.front().parent_path();
  for (const auto& file : files) {
    const auto differs = std::mismatch(common.begin(), common.end(), file.begin(), file.end()).first;
    std::filesystem::path shared;
    for (auto part = common.begin(); part != differs; ++part) shared /= *part;
    common = shared;
  }
  return common;
}

void add_field(Hash& hash, const Field& field) {
  hash.add(field.name);
  hash.add(dtype_name(field.dtype));
  hash.add(field.shape.size());
  for (const int64_t extent : field.shape) hash.add(static_cast<uint64_t>(extent));
}

}  // namespace

std::string content_id(const Source& source) {
  Hash hash;
  for (const Field& field : source.fields()) add_field(hash, field);
  auto files = source.files();
  for (auto& file : files) file = std::filesystem::absolute(file).lexically_normal();
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.empty()) return hash.hex();
  const std::filesystem::path folder = common_folder(files);
  for (const auto& file : files) {
    hash.add(file.lexically_relative(folder).generic_string());
    add_file(hash, file);
  }
  return hash.hex();
}

}  // namespace headroom
