// The sample cache: which blocks stay under which policy, whose turn comes to write one, and what it does when memory
// runs short.

#include "data/sample_cache.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "data/data_report.hpp"
#include "data/order.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {
namespace {

using Block = SampleCache::Block;
constexpr std::chrono::milliseconds at_once{0}, never{1 << 30};

bool has(SampleCache& cache, const std::string& key) {
  Block* block = cache.lookup(key);
  if (block != nullptr) cache.release(block);
  return block != nullptr;
}

bool put(SampleCache& cache, const std::string& key, uint64_t bytes, CachePolicy policy = CachePolicy::lru) {
  Block* block = cache.reserve(key, bytes, policy);
  if (block == nullptr) return false;
  std::memset(block->memory.data(), key.back(), bytes);
  cache.publish(block);
  cache.release(block);
  return true;
}

// The survey's table: 2,222 frames, room for 374, six epochs, cold start included (anchors/data_loading.md 3).
class SurveyTable : public testing::Test {
 protected:
  static constexpr uint64_t frames = 2222, room = 374, epochs = 6, clip = 6, sequence = 100;

  // Visits `frame`; frames are alike, so that the limit is `room` of them.
  static void visit(SampleCache& cache, uint64_t frame, CachePolicy policy) {
    std::string key = std::to_string(frame);
    key.insert(0, 8 - key.size(), '0');
    if (!has(cache, key)) put(cache, key, 64, policy);
  }

  template <class Visit>
  static double hit_rate(CachePolicy policy, Visit visits) {
    SampleCache cache;
    cache.set_limit(room * (64 + sizeof(Block) + 8));
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      visits(epoch, [&](uint64_t frame) { visit(cache, frame, policy); });
    }
    EXPECT_LE(cache.statistics().items, room);
    RecordProperty(policy == CachePolicy::lru ? "lru" : "planned",
                   std::to_string(100.0 * cache.statistics().hit_rate()));
    return 100.0 * cache.statistics().hit_rate();
  }

  static void frame_by_frame(Shuffle shuffle, uint64_t epoch, const auto& visit) {
    const Order order(shuffle, frames, 7, epoch);
    for (uint64_t i = 0; i < frames; ++i) visit(order.at(i));
  }

  // Every clip of six neighbours within a sequence, in the order given.
  static void clips(Shuffle shuffle, uint64_t epoch, const auto& visit) {
    std::vector<uint64_t> starts;
    for (uint64_t first = 0; first < frames; first += sequence) {
      const uint64_t end = std::min(first + sequence, frames);
      for (uint64_t start = first; start + clip <= end; ++start) starts.push_back(start);
    }
    const Order order(shuffle, starts.size(), 7, epoch);
    for (uint64_t i = 0; i < starts.size(); ++i) {
      for (uint64_t frame = 0; frame < clip; ++frame) visit(starts[order.at(i)] + frame);
    }
  }
};

TEST_F(SurveyTable, RandomFrames) {
  const auto visits = [](uint64_t epoch, const auto& visit) { frame_by_frame(Shuffle::global, epoch, visit); };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 1.05, 1.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 14.0);
}

TEST_F(SurveyTable, SequentialEpochs) {
  const auto visits = [](uint64_t epoch, const auto& visit) { frame_by_frame(Shuffle::sequential, epoch, visit); };
  EXPECT_EQ(hit_rate(CachePolicy::lru, visits), 0.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 14.0);
}

TEST_F(SurveyTable, RandomClips) {
  const auto visits = [](uint64_t epoch, const auto& visit) { clips(Shuffle::global, epoch, visit); };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 14.8, 1.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 16.5);
}

TEST_F(SurveyTable, ClipsInTheOrderOfSequences) {
  const auto visits = [](uint64_t epoch, const auto& visit) { clips(Shuffle::sequential, epoch, visit); };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 82.7, 1.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 16.4);
}

// Three sequences after the other three, in an order of their own each epoch; the clips of the three shuffled together.
TEST_F(SurveyTable, ClipsShuffledInsideGroupsOfThreeSequences) {
  const auto visits = [](uint64_t epoch, const auto& visit) {
    constexpr uint64_t sequences = (frames + sequence - 1) / sequence;
    const Order order(Shuffle::global, sequences, 7, epoch);
    for (uint64_t first = 0; first < sequences; first += 3) {
      std::vector<uint64_t> starts;
      for (uint64_t i = first; i < std::min(first + 3, sequences); ++i) {
        const uint64_t begin = order.at(i) * sequence, end = std::min(begin + sequence, frames);
        for (uint64_t start = begin; start + clip <= end; ++start) starts.push_back(start);
      }
      const Order inside(Shuffle::global, starts.size(), 7, epoch * sequences + first);
      for (uint64_t i = 0; i < starts.size(); ++i) {
        for (uint64_t frame = 0; frame < clip; ++frame) visit(starts[inside.at(i)] + frame);
      }
    }
  };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 82.8, 1.0);
  EXPECT_NEAR(hit_rate(CachePolicy::planned, visits), 16.5, 0.5);  // by which frames happen to come first
}

// The same by `data.grouped = { runs = 3 }`: runs as long as a sequence has clips.
TEST_F(SurveyTable, ClipsInTheGroupedOrder) {
  const auto visits = [](uint64_t epoch, const auto& visit) {
    constexpr uint64_t sequences = frames / sequence, clips_of_one = sequence - clip + 1;
    const Order order(Shuffle::grouped, sequences * clips_of_one, 7, epoch, {3, clips_of_one});
    for (uint64_t i = 0; i < sequences * clips_of_one; ++i) {
      const uint64_t at = order.at(i), start = at / clips_of_one * sequence + at % clips_of_one;
      for (uint64_t frame = 0; frame < clip; ++frame) visit(start + frame);
    }
  };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 82.8, 1.0);
}

TEST(ExpectedHitRate, IsWhatTheTableMeasures) {
  constexpr double kept = 374.0 / 2222.0;
  EXPECT_NEAR(expected_hit_rate(CachePolicy::lru, true, kept), 0.015, 0.001);
  EXPECT_EQ(expected_hit_rate(CachePolicy::lru, false, kept), 0.0);
  EXPECT_EQ(expected_hit_rate(CachePolicy::planned, true, kept), kept);
  EXPECT_EQ(expected_hit_rate(CachePolicy::lru, true, 1.5), 1.0);
}

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

TEST(BlockMemory, WhatIsNotWrittenYetIsPromised) {
  const int64_t before = read_untouched().of(PageUse::cache), ledger = read_ledger().live(Owner::cache);
  {
    const BlockMemory block(100'000);  // 25 pages
    ASSERT_TRUE(block);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % 64, 0u);
    EXPECT_EQ(read_untouched().of(PageUse::cache) - before, 25 * 4096);
    std::fill_n(block.data(), block.bytes(), std::byte{1});
    EXPECT_EQ(read_untouched().of(PageUse::cache), before);
    EXPECT_EQ(read_ledger().live(Owner::cache) - ledger, 25 * 4096);
  }
  {
    const BlockMemory block(100'000);
    ASSERT_TRUE(block);
  }
  EXPECT_EQ(read_untouched().of(PageUse::cache), before);
  EXPECT_EQ(read_ledger().live(Owner::cache), ledger);
}

TEST(BlockMemory, LeavesMappingsToOthers) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator has mappings of its own";
#endif
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  const auto before = mappings();
  std::vector<BlockMemory> blocks(40'000);
  for (BlockMemory& block : blocks) block = BlockMemory(65'536);
  EXPECT_TRUE(std::ranges::all_of(blocks, [](const BlockMemory& block) { return static_cast<bool>(block); }));
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i] = BlockMemory();  // neighbours are one mapping until then
  EXPECT_LT(mappings() - before, 12'000);
}

TEST(BlockMemory, OfAnySize) {
  for (const uint64_t bytes : {0, 1, 63, 64, 4096, 65'535, 65'536, 65'537, 5'000'000}) {
    const BlockMemory block(bytes);
    ASSERT_TRUE(block) << bytes;
    EXPECT_EQ(block.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % 64, 0u) << bytes;
    std::fill_n(block.data(), bytes, std::byte{1});
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which end the process there
  EXPECT_FALSE(BlockMemory(uint64_t{1} << 60));
#endif
  EXPECT_FALSE(BlockMemory(UINT64_MAX));
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

TEST(CacheReport, TheLineUsersKnow) {
  const SampleCache::Statistics statistics{374, uint64_t{49876} << 20, uint64_t{51200} << 20, 8245, 1755, 12, 3};
  EXPECT_EQ(cache_line(statistics),
            "cache: 374 items, 49876 / 51200 MB, 82.45 % hits (8245 hits, 1755 misses), 12 evictions");
  EXPECT_EQ(cache_json(statistics)["hit_rate"], 0.8245);
  EXPECT_EQ(cache_line({}), "cache: 0 items, 0 / 0 MB, 0.00 % hits (0 hits, 0 misses), 0 evictions");
}

CacheSetting frames_of_133_mib() {
  return {.limit_bytes = int64_t{374} * 133,
          .global_shuffle = true,
          .augments = false,
          .source = "frames",
          .train_samples = 2222,
          .val_samples = 10,
          .sample_bytes = 133};
}

TEST(CacheReport, SaysWhatToExpect) {
  CacheSetting setting = frames_of_133_mib();
  EXPECT_EQ(cache_outlook(setting),
            std::vector<std::string>{"the sample cache holds 374 of 2222 training samples: 16.8 % of reads will hit "
                                     "with data.cache_policy = \"planned\""});
  setting.limit_bytes = 2222 * 133;
  EXPECT_EQ(cache_outlook(setting), std::vector<std::string>{"the sample cache holds all 2222 training samples"});
  setting.limit_bytes = 0;
  EXPECT_TRUE(cache_outlook(setting).empty());
}

TEST(CacheReport, SaysThatLruCannotHelpUnderAShuffle) {
  CacheSetting setting = frames_of_133_mib();
  setting.samples = CachePolicy::lru;
  EXPECT_EQ(cache_outlook(setting)[0],
            "the sample cache holds 374 of 2222 training samples: 1.5 % of reads will hit with data.cache_policy = "
            "\"lru\", which drops each before its turn comes again; \"planned\" would hit 16.8 %");
  setting.augments = true;
  const auto lines = cache_outlook(setting);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "the sample cache keeps validation samples, and what datasource 'frames' puts there itself: its training "
            "samples are drawn anew each epoch");
  EXPECT_TRUE(lines[1].starts_with("data.cache_policy = \"lru\" cannot help under a global shuffle"));
}

TEST(CacheReport, WarnsAboveHalfOfTheRoom) {
  CacheSetting setting = frames_of_133_mib();
  setting.limit_bytes = int64_t{50} << 30;
  setting.room_bytes = int64_t{100} << 30;
  EXPECT_EQ(cache_outlook(setting).size(), 1u);
  setting.room_bytes = int64_t{64} << 30;
  ASSERT_EQ(cache_outlook(setting).size(), 2u);
  EXPECT_EQ(cache_outlook(setting)[1],
            "data.cache_size is 50.0 GiB, more than half of the 64.0 GiB this run may hold: it is the first to shrink "
            "when memory is short; at most 32.0 GiB is a good rule");
}

}  // namespace
}  // namespace headroom
