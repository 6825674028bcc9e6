// Scratch memory that a thread keeps between reads: touching new pages would cost more than the read. It is on the
// ledger as scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/ledger.hpp"

namespace headroom {

// Of one thread. Grows to the largest request and stays so. take() returns at least `bytes` bytes, not initialised,
// valid until the next take(); std::bad_alloc.
class ThreadBuffer {
 public:
  ThreadBuffer() = default;
  ~ThreadBuffer() { account(Owner::scratch, -static_cast<int64_t>(size_)); }
  ThreadBuffer(const ThreadBuffer&) = delete;
  ThreadBuffer& operator=(const ThreadBuffer&) = delete;

  std::byte* take(uint64_t bytes) {
    if (size_ >= bytes) return memory_.get();
    memory_.reset();
    account(Owner::scratch, -static_cast<int64_t>(size_));
    size_ = 0;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    size_ = bytes;
    account(Owner::scratch, static_cast<int64_t>(size_));
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  uint64_t size_ = 0;
};

}  // namespace headroom
