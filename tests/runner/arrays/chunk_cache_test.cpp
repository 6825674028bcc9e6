// The cache of decoded chunks: its limit, the ledger, and many threads that want the same chunks.
#include "arrays/chunk_cache.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "arrays/array_session.hpp"
#include "arrays/read_hooks.hpp"
#include "lanes.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/relief.hpp"

namespace headroom {
namespace {

class Chunked : public Lanes {
 protected:
  void write_chunks(hsize_t chunks, hsize_t extent, const std::vector<int>& filters = {H5Z_FILTER_DEFLATE}) {
    values_ = ramp(chunks * extent);
    const Hdf5Lock lock;
    const Handle file = create();
    write(create_dataset(file.get(), "x", H5T_STD_I32LE, {chunks * extent}, chunked({extent}, filters)),
          H5T_NATIVE_INT32, values_.data());
  }
  void TearDown() override {
    ArraySession::of_process()->set_chunk_cache_limit(32 << 20);
    Lanes::TearDown();
  }
  // Threads that each read many parts of the values, at places of their own.
  void read_everywhere(
      uint64_t threads, const std::function<void(uint64_t read)>& after_read = [](uint64_t) {}) {
    OpenArray array(path_, "x");
    std::vector<std::thread> running;
    for (uint64_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        std::vector<int32_t> read(6000);
        for (uint64_t k = 0; k < 60; ++k) {
          const uint64_t start = (k * 7919 + t * 104729) % (values_.size() - read.size()), count = read.size();
          const hr_array_target target{HR_WHOLE, i32, read.data(), 0};
          ASSERT_EQ(arrays_service().read_box(array.get(), &start, &count, &target, 1, nullptr), HR_OK);
          ASSERT_EQ(std::memcmp(read.data(), values_.data() + start, count * 4), 0);
          after_read(k);
        }
      });
    }
    for (std::thread& thread : running) thread.join();
  }
  std::vector<int32_t> values_;
};

TEST_F(Chunked, TheCacheStaysBelowItsLimitAndIsOnTheLedger) {
  write_chunks(64, 1024);
  ArraySession::of_process()->set_chunk_cache_limit(0);
  const int64_t before = read_ledger().live(Owner::cache);
  ArraySession::of_process()->set_chunk_cache_limit(20 * 4096);
  OpenArray array(path_, "x");
  std::vector<int32_t> read(values_.size());
  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_EQ(array.read({0}, {values_.size()}, {{HR_WHOLE, i32, read.data(), 0}}), HR_OK);
    EXPECT_TRUE(read == values_);
  }
  EXPECT_EQ(ArraySession::of_process()->chunks()->statistics().kept_bytes, 20u * 4096);
  EXPECT_EQ(read_ledger().live(Owner::cache) - before, 20 * 4096);
  const auto earlier = ArraySession::of_process()->chunks()->statistics();
  ASSERT_EQ(array.read({63 * 1024}, {1024}, {{HR_WHOLE, i32, read.data(), 0}}), HR_OK);
  EXPECT_EQ(ArraySession::of_process()->chunks()->statistics().hits, earlier.hits + 1);
  EXPECT_GE(give_back_memory(INT64_MAX), 20 * 4096);
  EXPECT_EQ(ArraySession::of_process()->chunks()->statistics().kept_bytes, 0u);
  ArraySession::of_process()->set_chunk_cache_limit(0);
  EXPECT_EQ(read_ledger().live(Owner::cache), before);
}

TEST_F(Chunked, AChunkLargerThanTheCacheIsReadAllTheSame) {
  write_chunks(3, 1024);
  ArraySession::of_process()->set_chunk_cache_limit(4095);
  expect_library_bytes("x", Lane::chunk_table);
  EXPECT_EQ(ArraySession::of_process()->chunks()->statistics().kept_bytes, 0u);
}

TEST_F(Chunked, ManyThreadsDecodeEachChunkOnce) {
  write_chunks(40, 4096);
  const uint64_t misses = ArraySession::of_process()->chunks()->statistics().misses;
  read_everywhere(6);
  EXPECT_LE(ArraySession::of_process()->chunks()->statistics().misses - misses, 40u);
}

TEST(DecodedChunks, SmallOnesAreNotKeptBeyondTheMemoryLimit) {
  ChunkCache cache;
  cache.set_limit(8 * 4096);
  const auto read_all = [&] {
    for (uint64_t cell = 0; cell < 8; ++cell) {
      const auto chunk = cache.get({1, cell}, 4096, [cell](std::span<std::byte> bytes) {
        std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(cell));
      });
      EXPECT_EQ(chunk->bytes()[4095], static_cast<std::byte>(cell));
    }
    return cache.statistics().kept_bytes;
  };
  set_memory_limit(1);  // nothing is granted
  const uint64_t kept_in_short_memory = read_all();
  set_memory_limit(0);
  EXPECT_EQ(kept_in_short_memory, 0u);
  EXPECT_EQ(read_all(), 8u * 4096);
}

TEST(DecodedChunks, AreDecodedOnceForAllThatWaitAlsoWhenTheyAreNotKept) {
  struct CountPauses : PauseListener {
    void begin_pause(PauseFor) override { ++begun; }
    void end_pause(PauseFor) override {}
    std::atomic<int> begun = 0;
  } pauses;
  ChunkCache cache;
  cache.set_limit(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const ListenToPauses listen(pauses);
      const auto chunk = cache.get({1, 0}, 1, [&](std::span<std::byte> bytes) {
        while (pauses.begun < 3) std::this_thread::yield();  // until all others wait for it
        bytes[0] = std::byte{7};
      });
      EXPECT_EQ(chunk->bytes()[0], std::byte{7});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.statistics().misses, 1u);
  EXPECT_EQ(cache.statistics().hits, 3u);
  EXPECT_EQ(cache.statistics().kept_bytes, 0u);
}

// The cache holds three of forty chunks, and all threads want all of them.
TEST_F(Chunked, ManyThreadsInATightCache) {
  write_chunks(40, 4096, {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32});
  ArraySession::of_process()->set_chunk_cache_limit(3 * 16384);
  read_everywhere(4, [](uint64_t read) {
    if (read % 16 == 0) give_back_memory(16384);
  });
  EXPECT_LE(ArraySession::of_process()->chunks()->statistics().kept_bytes, 3u * 16384);
}

}  // namespace
}  // namespace headroom
