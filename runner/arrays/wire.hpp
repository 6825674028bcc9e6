// Values as bytes between a process and its child, which is the same program: plain ones as they are, strings and
// vectors with their count before them, everything else field by field.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

namespace headroom {

// A type that is not a plain value has wire_fields(WireForm<Type> auto&), which ties its fields for both directions.
template <class T, class Type>
concept WireForm = std::same_as<std::remove_const_t<T>, Type>;

template <class T>
concept WirePlain = std::is_trivially_copyable_v<T>;

template <class T>
concept WireList = requires(T list) {
  typename T::value_type;
  list.resize(list.size());
  list.data();
};

class WireWriter {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (WirePlain<T>) {
      append(&value, sizeof value);
    } else if constexpr (WireList<T>) {
      put(uint64_t{value.size()});
      if constexpr (WirePlain<typename T::value_type>) {
        append(value.data(), value.size() * sizeof(typename T::value_type));
      } else {
        for (const auto& one : value) put(one);
      }
    } else {
      std::apply([this](const auto&... field) { (put(field), ...); }, wire_fields(value));
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, size_t bytes) {
    if (bytes > 0) bytes_.append(static_cast<const char*>(data), bytes);
  }
  std::string bytes_;
};

// Takes what a WireWriter put. Throws std::runtime_error where the bytes are not such a message.
class WireReader {
 public:
  explicit WireReader(std::span<const char> bytes) : left_(bytes) {}

  template <class T>
  void take(T& value) {
    if constexpr (WirePlain<T>) {
      take_bytes(&value, sizeof value);
    } else if constexpr (WireList<T>) {
      take_list(value);
    } else {
      std::apply([this](auto&... field) { (take(field), ...); }, wire_fields(value));
    }
  }

 private:
  template <class List>
  void take_list(List& list) {
    using Value = typename List::value_type;
    uint64_t count = 0;
    take(count);
    if constexpr (WirePlain<Value>) {
      if (count > left_.size() / sizeof(Value)) throw std::runtime_error("a message is cut off");
      list.resize(count);
      take_bytes(list.data(), count * sizeof(Value));
    } else {
      for (uint64_t i = 0; i < count; ++i) take(list.emplace_back());
    }
  }

  void take_bytes(void* to, size_t bytes) {
    if (bytes > left_.size()) throw std::runtime_error("a message is cut off");
    if (bytes > 0) std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }
  std::span<const char> left_;
};

}  // namespace headroom
