// Pages that were mapped and that nobody has written yet. They are not in U, but they will be: whoever asks for memory
// shares the limit with them. The kernel is asked (mincore) which are still untouched, so that a promise lives exactly
// until its pages are written.
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
  spare,  // behind the end of a tensor whose size was rounded up: written by nobody until claim_spare_pages()
};
inline constexpr size_t page_use_count = 5;
inline constexpr size_t page_bytes = 4096;

struct UntouchedBytes {
  std::array<int64_t, page_use_count> bytes{};
  int64_t of(PageUse use) const { return bytes[static_cast<size_t>(use)]; }
  int64_t promised() const;  // all but the spare ones
};

// All of this is [any], allocates nothing, and may be called with an allocator's locks held. Addresses and sizes are
// those of whole pages, except as told.

void pages_mapped(PageUse use, const void* data, size_t bytes);
void pages_unmapped(const void* data, size_t bytes);

// Writes to the whole pages among these bytes, of any address and size, without changing them: for memory that
// pages_mapped() is never told of.
void touch_pages(void* data, size_t bytes);

// How much is spare in all. Takes no lock.
int64_t spare_bytes();

// Spare pages that overlap these bytes (of any address and size): how much they are; and from now on promised.
int64_t spare_bytes_in(const void* data, size_t bytes);
void claim_spare_pages(const void* data, size_t bytes);

// As it was known last, without asking the kernel: never below what it would tell now. It takes a page that was only
// read for written.
int64_t promised_bytes();

// Asks the kernel: some 10 us, and 1 us for each MiB that was mapped lately.
UntouchedBytes read_untouched();

}  // namespace headroom
