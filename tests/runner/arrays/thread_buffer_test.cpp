// Scratch memory of reads: kept between them, and given back to a shortage while no read uses it.
#include "arrays/thread_buffer.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <thread>

#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20;
constexpr uint64_t size = 8 * mib;

int64_t reads_bytes() { return read_ledger().live(Owner::reads); }

std::byte* write(const ThreadBuffer::Use& use) {
  std::memset(use.data(), 7, use.size());
  return use.data();
}

TEST(ThreadBuffer, KeepsItsMemoryBetweenReads) {
  const int64_t before = reads_bytes();
  ThreadBuffer buffer;
  const std::byte* first = write(buffer.take(size));
  EXPECT_EQ(reads_bytes() - before, int64_t{size});
  EXPECT_EQ(buffer.take(size / 2).data(), first);
  EXPECT_EQ(buffer.take(size / 2).size(), size / 2);
  EXPECT_EQ(reads_bytes() - before, int64_t{size});
}

TEST(ThreadBuffer, AShortageTakesItWhileNoReadUsesIt) {
  ThreadBuffer buffer;
  write(buffer.take(size));
  const int64_t held = held_bytes(), reads = reads_bytes();
  EXPECT_GE(give_back_memory(INT64_MAX), int64_t{size});
  EXPECT_LE(held_bytes(), held - int64_t{size} + mib);
  EXPECT_LE(reads_bytes(), reads - int64_t{size});
  EXPECT_EQ(*write(buffer.take(size)), std::byte{7});  // and the next read has it again
}

TEST(ThreadBuffer, AShortageLeavesWhatAReadUses) {
  ThreadBuffer buffer;
  const ThreadBuffer::Use use = buffer.take(size);
  write(use);
  std::thread([&] { give_back_memory(size); }).join();
  EXPECT_EQ(use.data()[size - 1], std::byte{7});
}

TEST(ThreadBuffer, GoesWithItsThread) {
  const int64_t before = reads_bytes();
  std::thread([&] {
    thread_local ThreadBuffer buffer;
    write(buffer.take(size));
    EXPECT_EQ(reads_bytes() - before, int64_t{size});
  }).join();
  EXPECT_EQ(reads_bytes(), before);
}

// A plan adds this for each reader, whichever of them a probe saw at work.
TEST(ThreadBuffer, TheMostOfOneThreadIsKnown) {
  const auto of_thread = [](int shortages) {
    ThreadBuffer raw, decoded;
    for (int i = 0; i <= shortages; ++i) {
      write(raw.take(8 * size));
      write(decoded.take(12 * size));
      if (i < shortages) give_back_memory(INT64_MAX);
    }
  };
  std::thread(of_thread, 0).join();
  EXPECT_EQ(largest_reader_bytes(), int64_t{20 * size});
  std::thread(of_thread, 2).join();
  EXPECT_EQ(largest_reader_bytes(), int64_t{20 * size}) << "what a shortage took is counted once";
}

// Where a read and a shortage want it at once, one waits for the other.
TEST(ThreadBuffer, ReadsAndShortagesTakeTurns) {
  ThreadBuffer buffer;
  std::atomic<bool> ends{false};
  std::thread pressure([&] {
    while (!ends) give_back_memory(size);
  });
  for (int i = 0; i < 200; ++i) {
    const ThreadBuffer::Use use = buffer.take(mib);
    write(use);
    EXPECT_EQ(use.data()[mib - 1], std::byte{7});
  }
  ends = true;
  pressure.join();
}

#ifdef __SANITIZE_ADDRESS__
TEST(ThreadBufferDeathTest, ASanitizerSeesWhoGoesBeyondTheRequest) {
  ThreadBuffer buffer;
  write(buffer.take(size));
  const ThreadBuffer::Use use = buffer.take(size / 2);
  EXPECT_DEATH(std::memset(use.data(), 7, use.size() + 1), "use-after-poison");
}
#endif

}  // namespace
}  // namespace headroom
