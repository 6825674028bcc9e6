// The memory of one cached block: within the memory limit, on the ledger, and returned to the system when it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace headroom {

// Move-only. 64-byte aligned, not initialised.
class BlockMemory {
 public:
  BlockMemory() = default;  // none
  // False where the memory limit or the system has no room. Makes no other owner release memory, since a cache does not
  // justify that.
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
  int64_t held_bytes() const;  // with what the allocator adds by rounding up

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  bool mapped_ = false;  // by mmap(); else by malloc
};

}  // namespace headroom
