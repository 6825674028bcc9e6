#include "record/tensorboard.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <string_view>
#include <unistd.h>

namespace headroom {

namespace {

// What each value of a byte contributes, in the reflected form: the lowest bit comes first.
constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t reversed_polynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? rest >> 1 ^ reversed_polynomial : rest >> 1;
    table[byte] = rest;
  }
  return table;
}

constexpr auto table = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (char c : bytes) rest = rest >> 8 ^ table[(rest ^ static_cast<unsigned char>(c)) & 0xff];
  return ~rest;
}

// TFRecord masks its checksums, because a checksum over data that holds checksums is a weak one.
uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

namespace {

constexpr std::string_view file_prefix = "events.out.tfevents.";

// Protocol buffers: a key is (field number << 3 | wire type).
enum Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <typename Number>
std::string little_endian(Number value) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string encode_varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string key(uint32_t field, Wire wire) { return encode_varint(field << 3 | wire); }

std::string sized(uint32_t field, std::string_view content) {
  return (key(field, bytes) + encode_varint(content.size())).append(content);
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
std::string event(int64_t step, const std::string& content) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string text = key(1, fixed64) + little_endian(now.count());
  // proto3 leaves out a field that holds its default.
  if (step != 0) text += key(2, varint) + encode_varint(static_cast<uint64_t>(step));
  return text + content;
}

std::string first_record() { return tfrecord(event(0, sized(3, "brain.Event:2"))); }

std::string file_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  char host[256] = "localhost";
  // A name that is cut may come without a zero at its end: the last byte stays one.
  ::gethostname(host, sizeof host - 1);
  return std::string(file_prefix) + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count()) +
         "." + host + "." + std::to_string(::getpid());
}

std::filesystem::path event_file_of(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(file_prefix)) names.push_back(std::move(name));
  }
  // The oldest of several: names begin with the second in which they were made.
  return folder / (names.empty() ? file_name() : *std::min_element(names.begin(), names.end()));
}

}  // namespace

std::string tfrecord(const std::string& content) {
  const std::string length = little_endian(static_cast<uint64_t>(content.size()));
  return length + little_endian(masked_crc32c(length)) + content + little_endian(masked_crc32c(content));
}

TensorBoardFile::TensorBoardFile(const std::filesystem::path& folder) : file_(event_file_of(folder)) {
  if (file_.length() == 0) file_.append(first_record());
}

// Summary { repeated Value value = 1; }   Value { string tag = 1; float simple_value = 2; }
void TensorBoardFile::scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [name, value] : values) {
    summary += sized(1, sized(1, name) + key(2, fixed32) + little_endian(static_cast<float>(value)));
  }
  file_.append(tfrecord(event(step, sized(5, summary))));
}

// The first record has the same length at any time: its only number is a fixed64.
void TensorBoardFile::truncate(uint64_t length) { file_.truncate(std::max<uint64_t>(length, first_record().size())); }

}  // namespace headroom
