#include "memory/untouched_pages.hpp"

#include <algorithm>
#include <mutex>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace headroom {

namespace {

using Address = uintptr_t;

struct Range {
  Address begin = 0, end = 0;
};

// Disjoint ranges by address. Of a fixed capacity, because the allocator itself calls.
class Ranges {
 public:
  int64_t bytes() const { return bytes_; }

  // False: there is no place for another.
  bool add(Range range) {
    size_t i = first_ending_after(range.begin);
    if (i > 0 && ranges_[i - 1].end == range.begin) {
      ranges_[i - 1].end = range.end;
    } else if (i < count_ && ranges_[i].begin == range.end) {
      ranges_[i].begin = range.begin;
    } else if (!insert(i, range)) {
      return false;
    }
    bytes_ += static_cast<int64_t>(range.end - range.begin);
    return true;
  }

  int64_t bytes_in(Range wanted) const {
    int64_t bytes = 0;
    for (size_t i = first_ending_after(wanted.begin); i < count_ && ranges_[i].begin < wanted.end; ++i)
      bytes += static_cast<int64_t>(std::min(wanted.end, ranges_[i].end) - std::max(wanted.begin, ranges_[i].begin));
    return bytes;
  }

  // `taken` hears of each part of a range that went.
  template <class Taken>
  void remove(Range wanted, Taken taken) {
    for (size_t i = first_ending_after(wanted.begin); i < count_ && ranges_[i].begin < wanted.end;) {
      Range& range = ranges_[i];
      const Range part{std::max(wanted.begin, range.begin), std::min(wanted.end, range.end)};
      const Range behind{part.end, range.end};
      bytes_ -= static_cast<int64_t>(part.end - part.begin);
      range.end = part.begin;
      taken(part);
      if (range.begin == range.end) {
        if (behind.begin == behind.end) {
          erase(i);
        } else {
          range = behind;
        }
        continue;
      }
      ++i;
      // Without a place for what is behind, it counts as touched.
      if (behind.begin < behind.end && !insert(i, behind)) bytes_ -= static_cast<int64_t>(behind.end - behind.begin);
    }
  }

  // Leaves out what has been touched at the ends of ranges; returns the untouched bytes of all.
  int64_t look() {
    bytes_ = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count_; ++i) {
      Range range = ranges_[i];
      bytes_ += shrink(range);
      if (range.begin < range.end) ranges_[kept++] = range;
    }
    count_ = kept;
    return bytes_;
  }

 private:
  size_t first_ending_after(Address address) const {
    const auto* found = std::partition_point(ranges_.data(), ranges_.data() + count_,
                                             [&](const Range& range) { return range.end <= address; });
    return static_cast<size_t>(found - ranges_.data());
  }

  bool insert(size_t i, Range range) {
    if (count_ == ranges_.size()) return false;
    std::move_backward(ranges_.begin() + static_cast<std::ptrdiff_t>(i),
                       ranges_.begin() + static_cast<std::ptrdiff_t>(count_),
                       ranges_.begin() + static_cast<std::ptrdiff_t>(count_) + 1);
    ranges_[i] = range;
    ++count_;
    return true;
  }

  void erase(size_t i) {
    std::move(ranges_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              ranges_.begin() + static_cast<std::ptrdiff_t>(count_), ranges_.begin() + static_cast<std::ptrdiff_t>(i));
    --count_;
  }

  // To the hull of what is untouched. What the kernel cannot tell counts as untouched.
  static int64_t shrink(Range& range) {
    static std::array<unsigned char, 16384> resident;  // under the one mutex
    int64_t pages = 0;
    Range hull{range.end, range.begin};
    for (Address at = range.begin; at < range.end;) {
      const size_t count = std::min((range.end - at) / page_bytes, resident.size());
      const bool told = mincore(reinterpret_cast<void*>(at), count * page_bytes, resident.data()) == 0;
      for (size_t i = 0; i < count; ++i) {
        if (told && (resident[i] & 1) != 0) continue;
        ++pages;
        hull.begin = std::min(hull.begin, at + i * page_bytes);
        hull.end = at + (i + 1) * page_bytes;
      }
      at += count * page_bytes;
    }
    range = pages > 0 ? hull : Range{};
    return pages * static_cast<int64_t>(page_bytes);
  }

  std::array<Range, 2048> ranges_;
  size_t count_ = 0;
  int64_t bytes_ = 0;
};

struct Table {
  std::mutex mutex;
  std::array<Ranges, page_use_count> uses;  // guarded by it
  Ranges& of(PageUse use) { return uses[static_cast<size_t>(use)]; }
};

// Without a destructor: memory is unmapped until the very end.
Table& table() {
  alignas(Table) static std::array<std::byte, sizeof(Table)> place;
  static auto* made = new (place.data()) Table;
  return *made;
}

Range range_of(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<Address>(data);
  return {begin, begin + bytes};
}

// All pages that the bytes are in.
Range pages_of(const void* data, size_t bytes) {
  const Range range = range_of(data, bytes);
  return {range.begin / page_bytes * page_bytes, (range.end + page_bytes - 1) / page_bytes * page_bytes};
}

// Where there is no place to remember them they are touched now. Spare ones are forgotten.
void add_or_touch(Table& all, PageUse use, Range range) {
  if (all.of(use).add(range) || use == PageUse::spare) return;
  touch_pages(reinterpret_cast<void*>(range.begin), range.end - range.begin);
}

}  // namespace

int64_t UntouchedBytes::promised() const {
  int64_t sum = 0;
  for (size_t i = 0; i < page_use_count; ++i) sum += i == static_cast<size_t>(PageUse::spare) ? 0 : bytes[i];
  return sum;
}

void pages_mapped(PageUse use, const void* data, size_t bytes) {
  if (bytes == 0) return;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  add_or_touch(all, use, range_of(data, bytes));
}

void pages_unmapped(const void* data, size_t bytes) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  for (Ranges& ranges : all.uses) ranges.remove(range_of(data, bytes), [](Range) {});
}

void touch_pages(void* data, size_t bytes) {
  const Range range = range_of(data, bytes);
  const Address begin = (range.begin + page_bytes - 1) / page_bytes * page_bytes,
                end = range.end / page_bytes * page_bytes;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

int64_t spare_bytes_in(const void* data, size_t bytes) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  return all.of(PageUse::spare).bytes_in(pages_of(data, bytes));
}

void claim_spare_pages(const void* data, size_t bytes) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.of(PageUse::spare).remove(pages_of(data, bytes), [&](Range part) { add_or_touch(all, PageUse::tensors, part); });
}

int64_t promised_bytes() {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  int64_t sum = 0;
  for (size_t i = 0; i < page_use_count; ++i) sum += i == static_cast<size_t>(PageUse::spare) ? 0 : all.uses[i].bytes();
  return sum;
}

UntouchedBytes read_untouched() {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  UntouchedBytes found;
  for (size_t i = 0; i < page_use_count; ++i) {
    const bool spare = i == static_cast<size_t>(PageUse::spare);
    found.bytes[i] = spare ? all.uses[i].bytes() : all.uses[i].look();
  }
  return found;
}

}  // namespace headroom
