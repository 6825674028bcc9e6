#include "arrays/thread_buffer.hpp"

#include <algorithm>
#include <new>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sys/mman.h>
#include <thread>

#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {

namespace {

// Of all buffers of this thread, and the most of any thread.
thread_local int64_t wanted_of_thread = 0;
std::atomic<int64_t> largest_of_threads{0};

void note_wanted(int64_t more_bytes) {
  wanted_of_thread += more_bytes;
  note_bytes_beside_buffers(0);
}

// AddressSanitizer is to see who goes beyond the request, as in memory of malloc.
void mark_used([[maybe_unused]] std::byte* memory, [[maybe_unused]] uint64_t size, [[maybe_unused]] uint64_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(memory, bytes);
  __asan_poison_memory_region(memory + bytes, size - bytes);
#endif
}

}  // namespace

ThreadBuffer::ThreadBuffer()
    : rung_(add_rung(
          {.name = "scratch memory of reads", .order = 40, .give_back = [this](int64_t) { return give_back(); }})) {}

ThreadBuffer::~ThreadBuffer() {
  rung_ = {};
  free_memory();
  note_wanted(-wanted_bytes_);
}

ThreadBuffer::Use ThreadBuffer::take(uint64_t bytes) {
  while (in_use_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  Use use(*this, bytes);
  if (size_ < bytes) grow_to(bytes);
  mark_used(memory_, size_, bytes);
  return use;
}

void ThreadBuffer::grow_to(uint64_t bytes) {
  free_memory();
  if (bytes > INT64_MAX - page_bytes) throw std::bad_alloc();
  const uint64_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  Permit permit = make_room(static_cast<int64_t>(whole));
  // A little more than the limit, as malloc would: a read that is refused a few bytes cannot go on.
  if (!permit) permit = try_to_grow_heap(static_cast<int64_t>(whole));
  if (!permit) {
    note_refusal(static_cast<int64_t>(whole));
    throw std::bad_alloc();
  }
  void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  pages_mapped(PageUse::heap, memory, whole);
  memory_ = static_cast<std::byte*>(memory);
  size_ = whole;
  account(Owner::reads, static_cast<int64_t>(size_));
  const int64_t wanted = std::max(wanted_bytes_, static_cast<int64_t>(size_));
  note_wanted(wanted - std::exchange(wanted_bytes_, wanted));
}

int64_t ThreadBuffer::free_memory() {
  if (memory_ == nullptr) return 0;
  pages_unmapped(memory_, size_);
  mark_used(memory_, size_, size_);
  munmap(std::exchange(memory_, nullptr), size_);
  const auto freed = static_cast<int64_t>(std::exchange(size_, 0));
  account(Owner::reads, -freed);
  return freed;
}

int64_t ThreadBuffer::give_back() {
  if (in_use_.exchange(true, std::memory_order_acquire)) return 0;
  const int64_t freed = free_memory();
  in_use_.store(false, std::memory_order_release);
  return freed;
}

int64_t largest_reader_bytes() { return largest_of_threads.load(); }

void note_bytes_beside_buffers(int64_t bytes) {
  const int64_t taken = wanted_of_thread + bytes;
  int64_t seen = largest_of_threads.load();
  while (seen < taken && !largest_of_threads.compare_exchange_weak(seen, taken)) {
  }
}

}  // namespace headroom
