#include "memory/untouched_pages.hpp"

#include <gtest/gtest.h>
#include <random>
#include <set>
#include <sys/mman.h>
#include <vector>

#include "memory/budget.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20;

// Pages from the system, known as those of batches.
class Mapped {
 public:
  explicit Mapped(size_t bytes, PageUse use = PageUse::batches)
      : bytes_(bytes),
        data_(static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(data_, bytes_, MADV_NOHUGEPAGE);
    pages_mapped(use, data_, bytes_);
  }
  ~Mapped() {
    pages_unmapped(data_, bytes_);
    munmap(data_, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  void touch(size_t page) { data_[page * page_bytes] = 1; }
  void touch_all() {
    for (size_t page = 0; page < bytes_ / page_bytes; ++page) touch(page);
  }
  char* data() const { return data_; }

 private:
  size_t bytes_;
  char* data_;
};

int64_t untouched_batches() { return read_untouched().of(PageUse::batches); }

TEST(UntouchedPages, CountUntilTheyAreWritten) {
  const int64_t before = untouched_batches();
  {
    Mapped pages(100 * page_bytes);
    EXPECT_EQ(untouched_batches() - before, 100 * static_cast<int64_t>(page_bytes));
    pages.touch(50);
    EXPECT_EQ(untouched_batches() - before, 99 * static_cast<int64_t>(page_bytes));
    EXPECT_EQ(promised_bytes(), read_untouched().promised());
    pages.touch_all();
    EXPECT_EQ(untouched_batches(), before);
  }
  EXPECT_EQ(untouched_batches(), before);
}

TEST(UntouchedPages, AnyPagesInAnyOrder) {
  std::mt19937 random(3);
  constexpr size_t count = 300;
  const int64_t before = untouched_batches();
  Mapped pages(count * page_bytes);
  std::set<size_t> untouched;
  for (size_t i = 0; i < count; ++i) untouched.insert(i);
  while (!untouched.empty()) {
    const size_t page = random() % count;
    pages.touch(page);
    untouched.erase(page);
    ASSERT_EQ(untouched_batches() - before, static_cast<int64_t>(untouched.size() * page_bytes));
  }
}

TEST(UntouchedPages, PartsMayBeUnmapped) {
  const int64_t before = untouched_batches();
  Mapped pages(10 * page_bytes);
  pages_unmapped(pages.data() + 3 * page_bytes, 2 * page_bytes);
  EXPECT_EQ(untouched_batches() - before, 8 * static_cast<int64_t>(page_bytes));
  pages_unmapped(pages.data(), 10 * page_bytes);
  EXPECT_EQ(untouched_batches(), before);
}

// What goes away may be the written part or the other: what is left must not count for less than it may be.
TEST(UntouchedPages, WhatIsLeftOfARangeNeverCountsTooLittle) {
  std::mt19937 random(5);
  constexpr size_t count = 400;
  for (int round = 0; round < 50; ++round) {
    const int64_t before = untouched_batches();
    Mapped pages(count * page_bytes);
    std::vector<bool> touched(count), unmapped(count);
    for (int i = 0; i < 300; ++i) {
      const size_t page = random() % count;
      pages.touch(page);
      touched[page] = true;
    }
    read_untouched();
    for (int i = 0; i < 5; ++i) {
      const size_t first = random() % count, length = std::min<size_t>(random() % 100, count - first);
      pages_unmapped(pages.data() + first * page_bytes, length * page_bytes);
      for (size_t page = first; page < first + length; ++page) unmapped[page] = true;
      int64_t untouched = 0;
      for (size_t page = 0; page < count; ++page)
        if (!touched[page] && !unmapped[page]) untouched += static_cast<int64_t>(page_bytes);
      ASSERT_GE(promised_bytes() - before, untouched) << "as it was known last";
    }
    int64_t untouched = 0;
    for (size_t page = 0; page < count; ++page)
      if (!touched[page] && !unmapped[page]) untouched += static_cast<int64_t>(page_bytes);
    ASSERT_EQ(untouched_batches() - before, untouched);
  }
}

TEST(UntouchedPages, SparePagesArePromisedOnceTheyAreClaimed) {
  const int64_t before = read_untouched().of(PageUse::tensors);
  Mapped pages(10 * page_bytes, PageUse::spare);
  const int64_t promised = promised_bytes();
  EXPECT_EQ(spare_bytes_in(pages.data() + 100, 2 * page_bytes), 3 * static_cast<int64_t>(page_bytes));
  claim_spare_pages(pages.data() + 100, 2 * page_bytes);
  EXPECT_EQ(promised_bytes() - promised, 3 * static_cast<int64_t>(page_bytes));
  EXPECT_EQ(read_untouched().of(PageUse::tensors) - before, 3 * static_cast<int64_t>(page_bytes));
  EXPECT_EQ(spare_bytes_in(pages.data(), 10 * page_bytes), 7 * static_cast<int64_t>(page_bytes));
}

TEST(UntouchedPages, MoreRangesThanCanBeKeptAreWrittenAtOnce) {
  const int64_t before = promised_bytes();
  Mapped apart(2 * 5000 * page_bytes);
  pages_unmapped(apart.data(), 2 * 5000 * page_bytes);
  for (size_t i = 0; i < 5000; ++i) pages_mapped(PageUse::batches, apart.data() + 2 * i * page_bytes, page_bytes);
  const int64_t held = held_bytes(), kept = promised_bytes() - before;
  EXPECT_LT(kept, 5000 * static_cast<int64_t>(page_bytes));
  apart.touch_all();
  EXPECT_GE(held_bytes() - held, kept);
  EXPECT_EQ(read_untouched().of(PageUse::batches), 0);
}

// Linux maps each range below the one before.
TEST(UntouchedPages, NeighboursAreOneRangeOnEitherSide) {
  constexpr size_t count = 6000;
  constexpr auto page = static_cast<int64_t>(page_bytes);
  const int64_t before = promised_bytes();
  Mapped all(2 * count * page_bytes);
  pages_unmapped(all.data(), 2 * count * page_bytes);
  for (size_t i = count; i-- > 0;) pages_mapped(PageUse::batches, all.data() + i * page_bytes, page_bytes);
  // Every other page, and then those between: three become one.
  for (const size_t odd : {1, 0}) {
    for (size_t i = 0; i < 2000; i += 2)
      pages_mapped(PageUse::batches, all.data() + (count + i + odd) * page_bytes, page_bytes);
  }
  for (size_t i = 2001; i < 5000; i += 2)
    pages_mapped(PageUse::batches, all.data() + (count + i) * page_bytes, page_bytes);
  EXPECT_EQ(promised_bytes() - before, static_cast<int64_t>(count + 2000 + 1500) * page) << "none had to be touched";
  EXPECT_EQ(untouched_batches(), static_cast<int64_t>(count + 2000 + 1500) * page);
}

bool is_resident(void* page) {
  unsigned char resident = 0;
  EXPECT_EQ(mincore(page, page_bytes, &resident), 0);
  return (resident & 1) != 0;
}

// Nobody asked for them: they must not become memory, nor be forgotten.
TEST(UntouchedPages, SparePagesWithoutAPlaceArePromisedAndNotWritten) {
  constexpr size_t count = 3000;
  const int64_t before = promised_bytes(), spare_before = spare_bytes();
  {
    Mapped first(3 * page_bytes, PageUse::spare), apart(2 * count * page_bytes);
    pages_unmapped(apart.data(), 2 * count * page_bytes);
    for (size_t i = 0; i < count; ++i) pages_mapped(PageUse::spare, apart.data() + 2 * i * page_bytes, page_bytes);
    const int64_t promised = promised_bytes() - before, spare = spare_bytes() - spare_before;
    EXPECT_GT(promised, 0);
    EXPECT_EQ(promised + spare, static_cast<int64_t>((count + 3) * page_bytes));
    EXPECT_EQ(spare,
              spare_bytes_in(first.data(), 3 * page_bytes) + spare_bytes_in(apart.data(), 2 * count * page_bytes));

    pages_unmapped(first.data() + page_bytes, page_bytes);  // what lies behind has no place of its own
    EXPECT_FALSE(is_resident(first.data() + 2 * page_bytes));
    EXPECT_EQ(promised_bytes() - before, promised + static_cast<int64_t>(page_bytes));
    EXPECT_EQ(spare_bytes() - spare_before, spare - 2 * static_cast<int64_t>(page_bytes));
  }
  EXPECT_EQ(promised_bytes(), before);
  EXPECT_EQ(spare_bytes(), spare_before);
}

class Budget : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer holds memory of its own for what is written";
#endif
  }
  void TearDown() override {
    set_memory_ceiling(INT64_MAX);
    set_memory_limit(0);
  }
};

// A promise lives until its pages are written, however much else is asked for or given back meanwhile.
TEST_F(Budget, WhatWasPromisedIsNotGrantedAgain) {
  Mapped pages(64 * mib);
  set_memory_limit(held_bytes() + 100 * mib);
  EXPECT_FALSE(try_to_grow(50 * mib)) << "64 of 100 MiB are promised";
  EXPECT_TRUE(try_to_grow(20 * mib));
  {
    Mapped others(16 * mib, PageUse::tensors);
    others.touch_all();
    EXPECT_FALSE(try_to_grow(25 * mib));
  }
  EXPECT_TRUE(try_to_grow(25 * mib));
  pages.touch_all();
  EXPECT_FALSE(try_to_grow(50 * mib)) << "now they are held";
  EXPECT_TRUE(try_to_grow(25 * mib));
}

TEST_F(Budget, LeaveToGrowCountsWhileItLives) {
  set_memory_limit(held_bytes() + 100 * mib);
  {
    const Permit first = try_to_grow(60 * mib);
    EXPECT_TRUE(first);
    EXPECT_FALSE(try_to_grow(60 * mib));
  }
  EXPECT_TRUE(try_to_grow(60 * mib));
}

TEST_F(Budget, TheLowerOfLimitAndCeilingBinds) {
  set_memory_limit(held_bytes() + 100 * mib);
  set_memory_ceiling(held_bytes() + 40 * mib);
  EXPECT_FALSE(try_to_grow(60 * mib));
  EXPECT_TRUE(try_to_grow(30 * mib));
  set_memory_ceiling(INT64_MAX);
  EXPECT_TRUE(try_to_grow(60 * mib));
}

TEST_F(Budget, ALittleOfTheHeapMayUseWhatIsLeftFreeOfTheLimit) {
  Mapped pages(64 * mib);
  pages.touch_all();
  set_memory_limit(held_bytes());
  set_kill_line(0);
  EXPECT_FALSE(try_to_grow(page_bytes));
  EXPECT_FALSE(try_to_grow_heap(2 * mib));
  EXPECT_TRUE(try_to_grow_heap(page_bytes));
  set_memory_limit(held_bytes() - 40 * mib);
  EXPECT_FALSE(try_to_grow_heap(page_bytes));
  const EssentialAllocations essential;  // as where the end of a run is written down
  EXPECT_TRUE(try_to_grow_heap(page_bytes));
  EXPECT_FALSE(try_to_grow_heap(2 * mib));
}

TEST_F(Budget, ATinyRequestIsRefusedLastOfAllAndBelowWhatKills) {
  Mapped pages(64 * mib);
  pages.touch_all();
  set_memory_limit(held_bytes() - 5 * mib);  // beyond it by more than one cushion, and less than two
  const int64_t limit = memory_limit();
  for (const auto& [kill, ceiling, is_granted] :
       {std::tuple(limit + 40 * mib, INT64_MAX, true), std::tuple(limit + 6 * mib, INT64_MAX, false),
        std::tuple(limit + 40 * mib, limit + 6 * mib, false), std::tuple(limit + 40 * mib, limit - mib, false),
        std::tuple(int64_t{0}, INT64_MAX, false)}) {
    set_kill_line(kill);
    set_memory_ceiling(ceiling);
    EXPECT_EQ(static_cast<bool>(try_to_grow_heap_at_last(64 << 10)), is_granted) << kill - limit;
    EXPECT_FALSE(try_to_grow_heap_at_last(128 << 10));
    EXPECT_FALSE(try_to_grow_heap(page_bytes)) << "not before all has been given back";
  }
  set_kill_line(limit + 40 * mib);
  set_memory_limit(held_bytes() - 7 * mib);
  EXPECT_FALSE(try_to_grow_heap_at_last(page_bytes)) << "beyond two cushions";
  set_kill_line(0);
}

}  // namespace
}  // namespace headroom
