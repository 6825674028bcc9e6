// Reads TensorBoard event files back, checking every checksum.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "record/tensorboard.hpp"

namespace headroom {

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::vector<std::pair<std::string, float>> values;
};

class EventReader {
 public:
  static std::vector<ReadEvent> read(std::string_view file) {
    std::vector<ReadEvent> events;
    while (!file.empty()) {
      const std::string_view length = take(file, 8);
      check(length, take(file, 4));
      const std::string_view record = take(file, number<uint64_t>(length));
      check(record, take(file, 4));
      events.push_back(event(record));
    }
    return events;
  }

 private:
  static std::string_view take(std::string_view& text, size_t count) {
    if (count > text.size()) throw std::runtime_error("cut off");
    const std::string_view taken = text.substr(0, count);
    text.remove_prefix(count);
    return taken;
  }
  template <typename Number>
  static Number number(std::string_view text) {
    Number value;
    std::memcpy(&value, text.data(), sizeof value);
    return value;
  }
  static void check(std::string_view bytes, std::string_view sum) {
    if (number<uint32_t>(sum) != masked_crc32c(bytes)) throw std::runtime_error("wrong checksum");
  }
  static uint64_t varint(std::string_view& text) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(text, 1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  static std::string_view sized(std::string_view& text) { return take(text, varint(text)); }

  static ReadEvent event(std::string_view text) {
    ReadEvent result;
    while (!text.empty()) {
      switch (varint(text)) {
        case 1 << 3 | 1:
          result.wall_time = number<double>(take(text, 8));
          break;
        case 2 << 3 | 0:
          result.step = static_cast<int64_t>(varint(text));
          break;
        case 3 << 3 | 2:
          result.file_version = sized(text);
          break;
        case 5 << 3 | 2:
          summary(sized(text), result);
          break;
        default:
          throw std::runtime_error("unknown field of Event");
      }
    }
    return result;
  }
  static void summary(std::string_view text, ReadEvent& result) {
    while (!text.empty()) {
      if (varint(text) != (1 << 3 | 2)) throw std::runtime_error("unknown field of Summary");
      std::string_view value = sized(text);
      if (varint(value) != (1 << 3 | 2)) throw std::runtime_error("no tag");
      const std::string tag(sized(value));
      if (varint(value) != (2 << 3 | 5)) throw std::runtime_error("no simple_value");
      result.values.emplace_back(tag, number<float>(take(value, 4)));
    }
  }
};

}  // namespace headroom
