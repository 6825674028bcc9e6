#include "memory/untouched_pages.hpp"

#include <algorithm>
#include <atomic>
#include <sys/mman.h>
#include <type_traits>

#include "mutex.hpp"

// Linux 5.14; older headers lack it.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace headroom {

namespace {

using Address = uintptr_t;

struct Range {
  Address begin = 0, end = 0;
  int64_t untouched_bytes = 0;  // among them, when the kernel was asked last

  int64_t bytes() const { return static_cast<int64_t>(end - begin); }
};

// Disjoint ranges by address. Of a fixed capacity, because the allocator itself calls. What it tells is never below the
// truth.
class Ranges {
 public:
  int64_t untouched_bytes() const {
    int64_t bytes = 0;
    for (size_t i = 0; i < count_; ++i) bytes += ranges_[i].untouched_bytes;
    return bytes;
  }

  // Of untouched pages. False: there is no place for another.
  bool add(Range range) {
    range.untouched_bytes = range.bytes();
    const size_t i = first_ending_after(range.begin);
    const bool in_front = i > 0 && ranges_[i - 1].end == range.begin;
    const bool behind = i < count_ && ranges_[i].begin == range.end;  // the usual one: Linux maps downwards
    if (!in_front && !behind) return insert(i, range);
    if (in_front) range = joined(ranges_[i - 1], range);
    if (behind) range = joined(range, ranges_[i]);
    ranges_[in_front ? i - 1 : i] = range;
    if (in_front && behind) erase(i);
    return true;
  }

  int64_t bytes_in(Range wanted) const {
    int64_t bytes = 0;
    for (size_t i = first_ending_after(wanted.begin); i < count_ && ranges_[i].begin < wanted.end; ++i)
      bytes += static_cast<int64_t>(std::min(wanted.end, ranges_[i].end) - std::max(wanted.begin, ranges_[i].begin));
    return bytes;
  }

  // `taken` hears of each part of a range that went, `forgotten` of what lay behind one and has no place of its own.
  template <class Taken, class Forgotten>
  void remove(Range wanted, Taken taken, Forgotten forgotten) {
    for (size_t i = first_ending_after(wanted.begin); i < count_ && ranges_[i].begin < wanted.end;) {
      const Range whole = ranges_[i];
      const Range part{std::max(wanted.begin, whole.begin), std::min(wanted.end, whole.end)};
      taken(part);
      // Of the part that goes, as many pages may be the touched ones as there are.
      const int64_t touched = whole.bytes() - whole.untouched_bytes;
      const int64_t left = whole.untouched_bytes - std::max<int64_t>(part.bytes() - touched, 0);
      const Range before = with_untouched({whole.begin, part.begin}, left);
      const Range behind = with_untouched({part.end, whole.end}, left);
      if (before.bytes() > 0) {
        ranges_[i++] = before;
        if (behind.bytes() == 0) continue;
        if (insert(i, behind)) {
          ++i;
        } else {
          forgotten(behind);
        }
      } else if (behind.bytes() > 0) {
        ranges_[i++] = behind;
      } else {
        erase(i);
      }
    }
  }

  // Asks the kernel, and leaves out what has been touched: at the ends of ranges, and large parts amid them.
  void look() {
    for (size_t i = 0; i < count_; ++i) {
      Range rest;
      ranges_[i] = untouched_part(ranges_[i], rest);
      if (rest.bytes() == 0) continue;
      if (insert(i + 1, rest)) continue;
      const Range behind = with_untouched(rest, rest.bytes());
      ranges_[i].end = behind.end;  // no place for two: the touched ones between stay
      ranges_[i].untouched_bytes += behind.untouched_bytes;
    }
    const auto end = std::remove_if(ranges_.begin(), ranges_.begin() + static_cast<std::ptrdiff_t>(count_),
                                    [](const Range& range) { return range.bytes() == 0; });
    count_ = static_cast<size_t>(end - ranges_.begin());
  }

  static void touch(Range range) {
    if (madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin, MADV_POPULATE_WRITE) == 0) return;
    // Linux before 5.14. Others may write to the same bytes just now.
    for (Address at = range.begin; at < range.end; at += page_bytes)
      __atomic_fetch_or(reinterpret_cast<unsigned char*>(at), 0, __ATOMIC_RELAXED);
  }

 private:
  static Range joined(const Range& first, const Range& second) {
    return {first.begin, second.end, first.untouched_bytes + second.untouched_bytes};
  }

  static Range with_untouched(Range range, int64_t at_most) {
    range.untouched_bytes = std::min(range.bytes(), at_most);
    return range;
  }

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

  // From the first untouched page of a range to the last before a long touched part; `rest` is what lies behind that
  // part. What the kernel cannot tell counts as untouched.
  static Range untouched_part(Range range, Range& rest) {
    static std::array<unsigned char, 16384> resident;  // under the one mutex
    // Shorter touched parts are not worth a range each, of which there is a fixed number.
    constexpr Address long_part = 64 * page_bytes;
    Range found{range.end, range.end};
    for (Address at = range.begin; at < range.end;) {
      const size_t count = std::min((range.end - at) / page_bytes, resident.size());
      const bool told = mincore(reinterpret_cast<void*>(at), count * page_bytes, resident.data()) == 0;
      for (size_t i = 0; i < count; ++i) {
        // Bit 0: the page is in memory, mincore(2).
        if (told && (resident[i] & 1) != 0) continue;
        const Address page = at + i * page_bytes;
        if (found.untouched_bytes == 0) {
          found.begin = page;
        } else if (page - found.end >= long_part) {
          rest = with_untouched({page, range.end}, range.untouched_bytes);
          return found;
        }
        found.end = page + page_bytes;
        found.untouched_bytes += static_cast<int64_t>(page_bytes);
      }
      at += count * page_bytes;
    }
    return found.untouched_bytes > 0 ? found : Range{};
  }

  std::array<Range, 2048> ranges_{};
  size_t count_ = 0;
};

struct Table {
  Mutex mutex;
  std::array<Ranges, page_use_count> uses GUARDED_BY(mutex);
  Ranges& of(PageUse use) REQUIRES(mutex) { return uses[static_cast<size_t>(use)]; }
};

static_assert(std::is_trivially_destructible_v<Table>);  // memory is unmapped until the very end
constinit Table all_pages;

std::atomic<int64_t> all_spare_bytes{0};

Range range_of(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<Address>(data);
  return {.begin = begin, .end = begin + bytes};
}

// All pages that the bytes are in.
Range pages_of(const void* data, size_t bytes) {
  const Range range = range_of(data, bytes);
  return {.begin = range.begin / page_bytes * page_bytes,
          .end = (range.end + page_bytes - 1) / page_bytes * page_bytes};
}

// Where there is no place to remember them they are touched now.
void add_or_touch(PageUse use, Range range) REQUIRES(all_pages.mutex) {
  if (!all_pages.of(use).add(range)) Ranges::touch(range);
}

// Nobody asked for spare pages: they are never touched. Where there is no place for them they count as promised, beside
// the tensor that they mostly lie behind. Only where there is none for that either they are dropped.
void promise_spare(Range range) REQUIRES(all_pages.mutex) { all_pages.of(PageUse::tensors).add(range); }

void add_spare(Range range) REQUIRES(all_pages.mutex) {
  if (all_pages.of(PageUse::spare).add(range)) {
    all_spare_bytes.fetch_add(range.bytes(), std::memory_order_relaxed);
  } else {
    promise_spare(range);
  }
}

template <class Taken>
void remove_spare(Range wanted, Taken taken) REQUIRES(all_pages.mutex) {
  const auto gone = [](Range part) { all_spare_bytes.fetch_sub(part.bytes(), std::memory_order_relaxed); };
  all_pages.of(PageUse::spare)
      .remove(
          wanted,
          [&](Range part) {
            gone(part);
            taken(part);
          },
          [&](Range behind) {
            all_pages.mutex.is_held();
            gone(behind);
            promise_spare(behind);
          });
}

}  // namespace

int64_t UntouchedBytes::promised() const {
  int64_t sum = 0;
  for (size_t i = 0; i < page_use_count; ++i) sum += i == static_cast<size_t>(PageUse::spare) ? 0 : bytes[i];
  return sum;
}

void pages_mapped(PageUse use, const void* data, size_t bytes) {
  if (bytes == 0) return;
  const MutexLock lock(all_pages.mutex);
  if (use == PageUse::spare) {
    add_spare(range_of(data, bytes));
  } else {
    add_or_touch(use, range_of(data, bytes));
  }
}

void pages_unmapped(const void* data, size_t bytes) {
  const auto ignore = [](Range) {};
  const MutexLock lock(all_pages.mutex);
  for (size_t i = 0; i < page_use_count; ++i) {
    if (i != static_cast<size_t>(PageUse::spare))
      all_pages.uses[i].remove(range_of(data, bytes), ignore, Ranges::touch);
  }
  remove_spare(range_of(data, bytes), ignore);
}

void touch_pages(void* data, size_t bytes) {
  const Range range = range_of(data, bytes);
  const Address begin = (range.begin + page_bytes - 1) / page_bytes * page_bytes,
                end = range.end / page_bytes * page_bytes;
  if (begin < end) Ranges::touch({begin, end});
}

int64_t spare_bytes() { return all_spare_bytes.load(std::memory_order_relaxed); }

int64_t spare_bytes_in(const void* data, size_t bytes) {
  const MutexLock lock(all_pages.mutex);
  return all_pages.of(PageUse::spare).bytes_in(pages_of(data, bytes));
}

void claim_spare_pages(const void* data, size_t bytes) {
  const MutexLock lock(all_pages.mutex);
  remove_spare(pages_of(data, bytes), [](Range part) {
    all_pages.mutex.is_held();
    add_or_touch(PageUse::tensors, part);
  });
}

int64_t promised_bytes() {
  const MutexLock lock(all_pages.mutex);
  int64_t sum = 0;
  for (size_t i = 0; i < page_use_count; ++i)
    sum += i == static_cast<size_t>(PageUse::spare) ? 0 : all_pages.uses[i].untouched_bytes();
  return sum;
}

UntouchedBytes read_untouched() {
  const MutexLock lock(all_pages.mutex);
  UntouchedBytes found;
  for (size_t i = 0; i < page_use_count; ++i) {
    if (i != static_cast<size_t>(PageUse::spare)) all_pages.uses[i].look();
    found.bytes[i] = all_pages.uses[i].untouched_bytes();
  }
  return found;
}

}  // namespace headroom
