// Memory a thread keeps between reads, so that a steady reader touches no new pages. On the ledger as scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/ledger.hpp"

namespace headroom {

// One thread's; grows to the largest request. What an earlier take() handed out is lost.
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
