// Values as bytes between a process and its child, which is the same program: plain copies with counts before them.
#pragma once

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace headroom {

class WireWriter {
 public:
  template <class T>
  void put(const T& value) requires std::is_trivially_copyable_v<T> {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put_all(const T& values) {  // a string or vector of plain values
    put(uint64_t{values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data()));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Takes what a WireWriter put. Throws std::runtime_error where the bytes are not such a message.
class WireReader {
 public:
  explicit WireReader(std::span<const char> bytes) : left_(bytes) {}

  template <class T>
  T take() requires std::is_trivially_copyable_v<T> {
    T value;
    std::memcpy(&value, take_bytes(sizeof value), sizeof value);
    return value;
  }
  template <class T>
  T take_all() {
    using Value = typename T::value_type;
    const auto count = take<uint64_t>();
    if (count > left_.size() / sizeof(Value)) throw std::runtime_error("a message is cut off");
    T values(count, Value{});
    if (count > 0) std::memcpy(values.data(), take_bytes(count * sizeof(Value)), count * sizeof(Value));
    return values;
  }

 private:
  const char* take_bytes(size_t bytes) {
    if (bytes > left_.size()) throw std::runtime_error("a message is cut off");
    const char* start = left_.data();
    left_ = left_.subspan(bytes);
    return start;
  }
  std::span<const char> left_;
};

}  // namespace headroom
