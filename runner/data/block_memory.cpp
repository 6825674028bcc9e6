#include "data/block_memory.hpp"

#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/budget.hpp"
#include "memory/ledger.hpp"

namespace headroom {

namespace {

constexpr std::align_val_t alignment{64};

// From here on a block is mapped on its own. A process may have some 65,000 mappings.
constexpr uint64_t large_bytes = 4 << 20;

uint64_t whole_pages(uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

std::byte* map(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  pages_mapped(PageUse::cache, memory, whole_pages(bytes));
  madvise(memory, bytes, MADV_HUGEPAGE);  // where the system gives them; the first touch is cheaper by far
  return static_cast<std::byte*>(memory);
}

// The whole pages of memory that is about to be freed: an allocator would keep them for a while.
void return_pages(std::byte* data, uint64_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

BlockMemory::BlockMemory(uint64_t bytes) {
  if (bytes > INT64_MAX) return;
  const Permit permit = try_to_grow(static_cast<int64_t>(bytes));
  if (!permit) return;
  data_ = bytes >= large_bytes ? map(bytes) : static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  if (data_ == nullptr) return;
  bytes_ = bytes;
  account(Owner::cache, held_bytes());
}

int64_t BlockMemory::held_bytes() const {
  return static_cast<int64_t>(bytes_ >= large_bytes ? bytes_ : malloc_usable_size(data_));
}

BlockMemory::~BlockMemory() {
  if (data_ == nullptr) return;
  account(Owner::cache, -held_bytes());
  if (bytes_ >= large_bytes) {
    pages_unmapped(data_, whole_pages(bytes_));
    munmap(data_, bytes_);
  } else {
    return_pages(data_, bytes_);
    ::operator delete(data_, alignment);
  }
}

}  // namespace headroom
