// Scratch memory that a thread keeps between reads: touching new pages would cost more than the read. It is on the
// ledger as reads. While no read uses it, a shortage of memory takes it (memory/relief.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/relief.hpp"

namespace headroom {

// Of one thread. Grows to the largest request, and stays so until a shortage.
class ThreadBuffer {
 public:
  // The bytes of one take(). They stay in place while it lives. Of the buffer's thread.
  class Use {
   public:
    Use() = default;  // of no bytes
    Use(Use&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(buffer_, other.buffer_);
      std::swap(size_, other.size_);
      return *this;
    }
    ~Use() {
      if (buffer_ != nullptr) buffer_->in_use_.store(false, std::memory_order_release);
    }
    std::byte* data() const { return buffer_ != nullptr ? buffer_->memory_ : nullptr; }
    uint64_t size() const { return size_; }

   private:
    friend class ThreadBuffer;
    Use(ThreadBuffer& buffer, uint64_t size) : buffer_(&buffer), size_(size) {}

    ThreadBuffer* buffer_ = nullptr;
    uint64_t size_ = 0;
  };

  ThreadBuffer();
  ~ThreadBuffer();
  ThreadBuffer(const ThreadBuffer&) = delete;
  ThreadBuffer& operator=(const ThreadBuffer&) = delete;

  // `bytes` bytes, not initialised; std::bad_alloc. REQUIRES: no earlier Use of this buffer lives.
  Use take(uint64_t bytes);

 private:
  void grow_to(uint64_t bytes);
  int64_t free_memory();
  int64_t give_back();

  // Whoever sets in_use_ alone touches the members below: the thread for a Use, a rung while it frees them.
  std::atomic<bool> in_use_{false};
  std::byte* memory_ = nullptr;  // of its own mapping, so that all of it goes back to the system
  uint64_t size_ = 0;            // whole pages
  int64_t wanted_bytes_ = 0;     // the largest size that it had; of the thread

  RungRegistration rung_;  // made last: its function uses the others
};

// The most that the buffers of one thread have taken together, whatever a shortage took in between, with what a read
// took beside them. Of the process. [any]
int64_t largest_reader_bytes();
// A read of this thread has taken so much beside its buffers. [any]
void note_bytes_beside_buffers(int64_t bytes);

}  // namespace headroom
