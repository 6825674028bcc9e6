// Memory of one cached block: from within the memory limit, on the ledger, and back to the system at once where it is
// large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace headroom {

// Move-only. 64-byte aligned; not touched yet.
class BlockMemory {
 public:
  BlockMemory() = default;  // none
  // Evaluates to false where the memory limit leaves no room, or the system has no more: asks nobody to give back.
  explicit BlockMemory(uint64_t bytes);
  BlockMemory(BlockMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, false)) {}
  BlockMemory& operator=(BlockMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~BlockMemory();

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  int64_t held_bytes() const;  // with what the allocator rounds up

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  bool mapped_ = false;  // on its own
};

}  // namespace headroom
