#include "data/block_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {

namespace {

constexpr uint64_t alignment = 64;

// A block of at least this size has a mapping of its own, which goes back to the system whole. malloc() would keep it
// for a while and reuse it without asking the memory limit.
constexpr uint64_t least_mapped_bytes = 64 << 10;
constexpr uint64_t huge_bytes = 4 << 20;
// A quarter of what Linux allows a process by default (vm.max_map_count, 65,530).
constexpr int most_mappings = 16'384;
std::atomic<int> mappings{0};

uint64_t whole_units(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

// nullptr: the system has no more, or there are too many.
std::byte* map(uint64_t bytes) {
  if (mappings >= most_mappings) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ++mappings;
  pages_mapped(PageUse::cache, memory, bytes);
  // Huge pages make the first touch much cheaper. A smaller block would share one with its neighbours, and not be freed
  // whole.
  if (bytes >= huge_bytes) madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

void unmap(std::byte* data, uint64_t bytes) {
  --mappings;
  pages_unmapped(data, bytes);
  if (munmap(data, bytes) != 0) madvise(data, bytes, MADV_DONTNEED);  // too many mappings: the addresses stay
}

// Returns the whole pages of memory that is about to be freed. malloc() would keep them for a while, and a cache of
// small blocks has nothing else to give back.
void return_pages(std::byte* data, uint64_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

BlockMemory::BlockMemory(uint64_t bytes) {
  if (bytes > INT64_MAX) return;
  look_before_growing(static_cast<int64_t>(bytes));
  {
    const Permit permit = try_to_grow(static_cast<int64_t>(bytes));
    if (!permit) return;
    if (bytes >= least_mapped_bytes) data_ = map(whole_units(bytes, page_bytes));
    mapped_ = data_ != nullptr;
  }
  // Without the permit: malloc's extents ask for one themselves, and the bytes would count twice. Not by new: its
  // handler would ask others to give memory back.
  if (!mapped_)
    data_ =
        static_cast<std::byte*>(std::aligned_alloc(alignment, whole_units(std::max<uint64_t>(bytes, 1), alignment)));
  if (data_ == nullptr) return;
  bytes_ = bytes;
  account(Owner::cache, held_bytes());
}

int64_t BlockMemory::held_bytes() const {
  return static_cast<int64_t>(mapped_ ? whole_units(bytes_, page_bytes) : malloc_usable_size(data_));
}

BlockMemory::~BlockMemory() {
  if (data_ == nullptr) return;
  account(Owner::cache, -held_bytes());
  if (mapped_) {
    unmap(data_, whole_units(bytes_, page_bytes));
  } else {
    return_pages(data_, bytes_);
    std::free(data_);
  }
}

}  // namespace headroom
