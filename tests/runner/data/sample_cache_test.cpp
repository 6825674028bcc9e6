// The sample cache: which blocks a new one replaces, whose turn comes to write one, and what it does when memory runs
// short.
#include "data/sample_cache.hpp"

#include <cstring>
#include <thread>

#include "cached_blocks.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"

namespace headroom {
namespace {

constexpr std::chrono::milliseconds at_once{0}, never{1 << 30};

TEST(SampleCachePolicy, PlannedDropsNothingForANewBlock) {
  SampleCache cache;
  cache.set_limit(100000);
  ASSERT_TRUE(put(cache, "a", 60000, CachePolicy::planned));
  EXPECT_FALSE(put(cache, "b", 60000, CachePolicy::planned));
  EXPECT_FALSE(put(cache, "b", 60000, CachePolicy::lru));
  EXPECT_TRUE(has(cache, "a"));
  EXPECT_EQ(cache.statistics().refused, 2u);
  EXPECT_EQ(cache.statistics().evictions, 0u);
  cache.set_limit(10000);
  EXPECT_FALSE(has(cache, "a")) << "a smaller limit holds for it too";
}

TEST(SampleCachePolicy, AnEvictedBlocksMemoryIsUsedAgain) {
  constexpr uint64_t bytes = 8 << 20;
  SampleCache cache;
  cache.set_limit(bytes + 4096);
  Block* first = cache.reserve("a", bytes, CachePolicy::lru);
  ASSERT_NE(first, nullptr);
  const std::byte* data = first->memory.data();
  cache.publish(first);
  cache.release(first);
  Block* second = cache.reserve("b", bytes, CachePolicy::lru);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->memory.data(), data);
  cache.release(second);
}

TEST(SampleCacheWriters, AnotherThreadWaitsForTheBlockBeingWritten) {
  SampleCache cache;
  cache.set_limit(100000);
  Block* mine = cache.acquire("k", 1000, CachePolicy::lru);
  ASSERT_NE(mine, nullptr);
  EXPECT_FALSE(mine->published);
  const std::byte* seen = nullptr;
  std::thread other([&] {
    Block* block = cache.acquire("k", 1000, CachePolicy::lru);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(block->published);
    EXPECT_EQ(static_cast<char>(block->memory.data()[999]), 'x');
    seen = block->memory.data();
    cache.release(block);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it is there by now, as a rule
  std::memset(mine->memory.data(), 'x', 1000);
  cache.publish(mine);
  other.join();
  EXPECT_EQ(seen, mine->memory.data());
  cache.release(mine);
  EXPECT_EQ(cache.statistics().hits, 1u);
  EXPECT_EQ(cache.statistics().misses, 1u);
}

TEST(SampleCacheWriters, WhereTheWriterGivesUpTheNextOneWrites) {
  SampleCache cache;
  cache.set_limit(100000);
  Block* mine = cache.acquire("k", 1000, CachePolicy::lru);
  std::thread other([&] {
    Block* block = cache.acquire("k", 1000, CachePolicy::lru);
    ASSERT_NE(block, nullptr);
    EXPECT_FALSE(block->published);
    cache.publish(block);
    cache.release(block);
  });
  cache.release(mine);
  other.join();
  EXPECT_TRUE(has(cache, "k"));
}

// Two threads that each write what the other wants would wait for ever.
TEST(SampleCacheWriters, WhoWritesABlockDoesNotWaitForAnother) {
  SampleCache cache;
  cache.set_limit(100000);
  Block* a = cache.acquire("a", 1000, CachePolicy::lru);
  std::thread other([&] {
    Block* b = cache.acquire("b", 1000, CachePolicy::lru);
    EXPECT_EQ(cache.acquire("a", 1000, CachePolicy::lru), nullptr);
    cache.release(b);
  });
  other.join();
  cache.release(a);
}

TEST(SampleCacheWriters, ManyThreadsReadEachBlockOnce) {
  SampleCache cache;
  cache.set_limit(1 << 20);
  std::atomic<int> written{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        Block* block = cache.acquire(std::to_string((i + t) % 50), 1000, CachePolicy::lru);
        ASSERT_NE(block, nullptr);
        if (!block->published) {
          ++written;
          std::this_thread::sleep_for(std::chrono::microseconds(300));
          std::memset(block->memory.data(), (i + t) % 50, 1000);
          cache.publish(block);
        }
        EXPECT_EQ(static_cast<int>(block->memory.data()[999]), (i + t) % 50);
        cache.release(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written, 50);
}

TEST(SampleCachePressure, IsTheFirstRungOfTheLadder) {
  SampleCache cache;
  ASSERT_FALSE(rungs().empty());
  EXPECT_EQ(rungs().front()->name, "sample cache");
  EXPECT_LT(rungs().front()->order, 100);
}

TEST(SampleCachePressure, GivesBackPlannedBlocksTooButNoneInUse) {
  SampleCache cache(never);
  cache.set_limit(1 << 20);
  ASSERT_TRUE(put(cache, "a", 300000, CachePolicy::planned));
  ASSERT_TRUE(put(cache, "b", 300000, CachePolicy::planned));
  Block* held = cache.lookup("a");
  const int64_t before = read_ledger().live(Owner::cache);
  EXPECT_GE(give_back_memory(1), 300000);
  EXPECT_NEAR(static_cast<double>(read_ledger().live(Owner::cache)), static_cast<double>(before - 300000), 4096);
  EXPECT_FALSE(has(cache, "b"));
  EXPECT_EQ(give_back_memory(1), 0);
  EXPECT_FALSE(put(cache, "c", 300000, CachePolicy::planned)) << "it does not grow again at once";
  cache.release(held);
  EXPECT_TRUE(has(cache, "a"));
}

TEST(SampleCachePressure, GrowsAgainWhenMemoryHasBeenThereForAWhile) {
  SampleCache cache(at_once);
  cache.set_limit(1 << 20);
  ASSERT_TRUE(put(cache, "a", 300000));
  ASSERT_GT(give_back_memory(1), 0);
  EXPECT_TRUE(put(cache, "b", 300000));
  EXPECT_TRUE(put(cache, "c", 300000));
  EXPECT_TRUE(has(cache, "b"));
}

TEST(SampleCachePressure, TightenedItHasHalfTheRoomUntilRelaxed) {
  SampleCache cache;
  cache.set_limit(1 << 20);
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(put(cache, key, 300000, CachePolicy::planned));
  std::shared_ptr<const Rung> rung;  // the one that was made last: the process's own cache has another
  for (const auto& other : rungs()) rung = other->name == "sample cache" ? other : rung;
  ASSERT_NE(rung, nullptr);
  rung->tighten();
  EXPECT_EQ(cache.statistics().items, 1u);
  EXPECT_FALSE(put(cache, "d", 300000, CachePolicy::planned));
  rung->relax();
  EXPECT_TRUE(put(cache, "d", 300000, CachePolicy::planned));
  rung->relax();  // once too often: the limit is the limit
  EXPECT_TRUE(put(cache, "e", 300000, CachePolicy::planned));
  EXPECT_FALSE(put(cache, "f", 300000, CachePolicy::planned));
}

class UnderALimit : public testing::Test {
 protected:
  void TearDown() override { set_memory_limit(0); }
};

TEST_F(UnderALimit, TheCacheStopsGrowingAndGoesOnWithWhatItHas) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "TSan holds several bytes for each that is written";
#endif
  constexpr uint64_t bytes = 16 << 20;
  SampleCache cache(never);
  cache.set_limit(16 * bytes);
  set_memory_limit(held_bytes() + static_cast<int64_t>(3 * bytes));
  int kept = 0;
  for (int i = 0; i < 16; ++i) kept += put(cache, std::to_string(i), bytes) ? 1 : 0;
  const auto statistics = cache.statistics();
  EXPECT_GE(statistics.items, 1u);
  EXPECT_LE(statistics.items, 3u);
  EXPECT_EQ(kept, 15) << "all but the one that met the limit: the others take the place of older ones";
  EXPECT_TRUE(has(cache, "15"));
  EXPECT_LE(held_bytes(), memory_limit());
}

TEST_F(UnderALimit, TheCacheShrinksBeforeOthersAreRefused) {
  for (const uint64_t bytes : {uint64_t{16} << 20, uint64_t{64} << 10}) {
    SampleCache cache(never);
    cache.set_limit(64 << 20);
    for (uint64_t i = 0; i * bytes < (48 << 20); ++i) put(cache, std::to_string(i), bytes, CachePolicy::planned);
    ASSERT_GE(cache.statistics().used_bytes, uint64_t{32} << 20);
    set_memory_limit(held_bytes() + cushion_bytes(held_bytes()) + (5 << 20));
    EXPECT_TRUE(make_room(20 << 20)) << "with blocks of " << bytes;
    set_memory_limit(0);
  }
}

}  // namespace
}  // namespace headroom
