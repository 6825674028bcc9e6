// Pages that are mapped and not written yet. They are not in U, but will be, so the budget counts them in addition, as
// promised. The kernel is asked (mincore) which pages are still untouched, so a promise ends when its pages are
// written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

enum class PageUse : uint8_t {
  batches,
  cache,
  tensors,
  heap,   // malloc and new
  spare,  // behind the end of a tensor whose size was rounded up: not written until claim_spare_pages(), not promised
};
inline constexpr size_t page_use_count = 5;
inline constexpr size_t page_bytes = 4096;

struct UntouchedBytes {
  std::array<int64_t, page_use_count> bytes{};
  int64_t of(PageUse use) const { return bytes[static_cast<size_t>(use)]; }
  int64_t promised() const;  // all but the spare ones
};

// All functions here are [any], allocate nothing, and may be called with an allocator's locks held. Addresses and sizes
// are whole pages unless a comment says otherwise.

// Where the table (2,048 ranges a use) is full, the pages are written at once instead of remembered.
void pages_mapped(PageUse use, const void* data, size_t bytes);
void pages_unmapped(const void* data, size_t bytes);

// Writes to the whole pages among these bytes (any address and size) without changing them. For memory that is not
// reported with pages_mapped().
void touch_pages(void* data, size_t bytes);

// All spare bytes. Takes no lock.
int64_t spare_bytes();

// The spare pages that overlap these bytes (any address and size): their size, and moving them to the promised ones.
int64_t spare_bytes_in(const void* data, size_t bytes);
void claim_spare_pages(const void* data, size_t bytes);

// Promised bytes as known from the last read_untouched(), without asking the kernel: at least what it would say now.
// The kernel reports a page that was only read as touched.
int64_t promised_bytes();

// Asks the kernel: some 10 us, and 1 us for each MiB that was mapped recently.
UntouchedBytes read_untouched();

}  // namespace headroom
