// malloc and new within the memory limit, beside tensors.
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <thread>

#include "memory/process_memory.hpp"
#include "memory/relief.hpp"
#include "tensor_memory.hpp"

#if !HEADROOM_SYSTEM_ALLOCATOR

namespace headroom {
namespace {

using Heap = TensorAllocator;

// malloc is asked again after each call of the new_handler: it must not go on for what it cannot have.
TEST_F(Heap, WhatNewIsRefusedIsAskedForInOneGo) {
  std::vector<int64_t> asked;
  asked.reserve(1000);
  at::Tensor cached = megabytes(100);
  const RungRegistration rung = add_rung({.name = "cache", .order = 10, .give_back = [&](int64_t wanted) -> int64_t {
                                            asked.push_back(wanted);
                                            if (!cached.defined()) return 0;
                                            cached.reset();
                                            return purge_tensor_memory();
                                          }});
  const int64_t limit = held_bytes() + 20 * mib;
  set_memory_limit(limit + cushion_bytes(limit));
  const int64_t refusals = heap_refusals();
  EXPECT_THROW(::operator delete(::operator new(static_cast<size_t>(memory_limit() + mib))), std::bad_alloc);
  EXPECT_TRUE(asked.empty()) << "it can never fit";
  EXPECT_EQ(heap_refusals() - refusals, 1);
  EXPECT_NO_THROW(::operator delete(::operator new(60 * mib)));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_GE(asked[0], 60 * mib);
}

// What a malloc of C libraries gets, which know no new_handler; written, as they do.
void* written(size_t bytes) {
  void* data = std::malloc(bytes);
  if (data != nullptr) std::memset(data, 1, bytes);
  return data;
}

// A limit at which no more than a cushion's worth of memory can be had, of what is not free already.
void leave_nothing() {
  int64_t limit = held_bytes();
  while (limit - cushion_bytes(limit) < held_bytes()) limit += mib / 4;
  set_memory_limit(limit);
}

TEST_F(Heap, MallocGetsWhatTensorsGaveBack) {
  for (const size_t bytes : {size_t{100} << 10, size_t{900} << 10, size_t{5} << 20}) {
    const auto count = static_cast<size_t>(40 * mib) / bytes;
    std::vector<void*> blocks;
    blocks.reserve(count);
    megabytes(64);
    leave_nothing();
    for (size_t i = 0; i < count; ++i) blocks.push_back(written(bytes));
    EXPECT_EQ(std::ranges::count(blocks, nullptr), 0) << bytes;
    EXPECT_LE(held_bytes(), memory_limit() + cushion_bytes(memory_limit()) + mib);
    for (void* data : blocks) std::free(data);
    set_memory_limit(0);
    purge_heap();
  }
}

// What a cache frees in the middle of malloc is the heap's until it is purged.
TEST_F(Heap, MallocGetsWhatACacheOfTheHeapGaveBack) {
  std::vector<void*> cache, blocks;
  for (int i = 0; i < 160; ++i) cache.push_back(written(256 << 10));
  blocks.reserve(40);
  const RungRegistration rung = add_rung({.name = "cache", .order = 10, .give_back = [&](int64_t wanted) -> int64_t {
                                            int64_t bytes = 0;
                                            for (; bytes < wanted && !cache.empty(); cache.pop_back(), bytes += mib / 4)
                                              std::free(cache.back());
                                            return bytes;
                                          }});
  leave_nothing();
  for (int i = 0; i < 30; ++i) blocks.push_back(written(900 << 10));
  EXPECT_EQ(std::ranges::count(blocks, nullptr), 0);
  for (void* data : blocks) std::free(data);
  for (void* data : cache) std::free(data);
}

// Code that malloc refuses crashes; code that a tensor is refused can stop.
TEST_F(Heap, ATensorIsRefusedBeforeMallocGetsNothing) {
  const at::Tensor first = at::empty({8});
  purge_tensor_memory();
  leave_nothing();
  std::vector<void*> blocks;
  blocks.reserve(10'000);
  const auto until_refused = [&] {
    while (blocks.size() < blocks.capacity()) {
      at::empty({8});  // out of what is mapped already
      blocks.push_back(written(50'000));
    }
  };
  EXPECT_THROW(until_refused(), c10::OutOfMemoryError);
  EXPECT_GT(blocks.size(), 20u);
  EXPECT_EQ(std::ranges::count(blocks, nullptr), 0);
  EXPECT_NO_THROW(at::empty({8})) << "the heap did not grow again";
  for (void* data : blocks) std::free(data);
}

// A library that generates code maps memory for it without asking, and may then crash for want of a few bytes.
TEST_F(Heap, ATinyRequestPassesWhereALibraryHasUsedWhatMallocMayHave) {
  const at::Tensor first = at::empty({8});
  purge_tensor_memory();
  purge_heap();
  leave_nothing();
  set_kill_line(2 * memory_limit());
  // To half a cushion below what a tiny request may use.
  const auto code_bytes = static_cast<size_t>(5 * cushion_bytes(memory_limit()) / 2);
  void* code = mmap(nullptr, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memset(code, 1, code_bytes);
  std::vector<void*> tiny;
  for (int i = 0; i < 48; ++i) tiny.push_back(written(20'000));
  EXPECT_EQ(std::ranges::count(tiny, nullptr), 0);
  EXPECT_EQ(written(900 << 10), nullptr);
  EXPECT_THROW(at::empty({8}), c10::OutOfMemoryError) << "and what can be refused is";
  munmap(code, code_bytes);
  set_kill_line(0);
  for (void* data : tiny) std::free(data);
  purge_heap();
  EXPECT_NO_THROW(at::empty({8}));
}

// jemalloc makes a thread's cache when that thread first calls malloc.
TEST_F(Heap, AThreadMayBeginWhereMemoryIsShort) {
  std::atomic<bool> is_short{false}, got_little{false}, got_much{false};
  const auto begin = [&is_short](size_t bytes, std::atomic<bool>& got) {
    return std::thread([&is_short, &got, bytes] {
      while (!is_short) std::this_thread::yield();
      void* data = std::malloc(bytes);
      got = data != nullptr;
      std::free(data);
    });
  };
  void* cache = nullptr;
  const RungRegistration rung = add_rung({.name = "cache", .order = 10, .give_back = [&](int64_t) -> int64_t {
                                            if (!is_short) return 0;
                                            std::free(std::exchange(cache, nullptr));
                                            return 100;
                                          }});
  std::vector<void*> blocks;
  blocks.reserve(1 << 20);
  cache = std::malloc(100);
  leave_nothing();
  std::thread little = begin(100, got_little), much = begin(static_cast<size_t>(memory_limit() + mib), got_much);
  for (const size_t bytes : {900'000, 50'000, 5'000, 100}) {
    while (blocks.size() < blocks.capacity()) {
      void* data = written(bytes);
      if (data == nullptr) break;
      blocks.push_back(data);
    }
  }
  is_short = true;
  little.join();
  EXPECT_TRUE(got_little);
  EXPECT_NE(cache, nullptr) << "freed by a thread that has no cache of its own";
  EXPECT_LT(blocks.size(), blocks.capacity());
  std::free(cache);
  much.join();
  EXPECT_FALSE(got_much);
  for (void* data : blocks) std::free(data);
}

// The ladder is climbed in the middle of malloc, on any of them.
TEST_F(Heap, ManyThreadsShareTooLittleMemory) {
  std::mutex mutex;
  std::vector<at::Tensor> cache;
  const RungRegistration rung = add_rung({.name = "cache", .order = 10, .give_back = [&](int64_t) -> int64_t {
                                            const std::unique_lock lock(mutex, std::try_to_lock);
                                            if (!lock || cache.empty()) return 0;
                                            const int64_t bytes = cache.back().numel();
                                            cache.pop_back();
                                            return bytes;
                                          }});
  set_memory_limit(held_bytes() + 60 * mib);
  std::atomic<int64_t> served{0}, refused{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<void, decltype(&std::free)>> blocks;
    for (int i = 0; i < 3'000; ++i) try {
        const size_t bytes = random() % (random() % 16 == 0 ? 2 * mib : 60'000) + 1;
        const uint32_t what = random() % 3;
        if (what == 0) {
          const at::Tensor made = at::empty({static_cast<int64_t>(bytes)}, at::kByte).fill_(1);
          const std::lock_guard lock(mutex);
          cache.push_back(made);
        } else if (what == 1) {
          blocks.emplace_back(written(bytes), &std::free);
          if (blocks.back() == nullptr) throw std::bad_alloc();
        } else {
          const std::vector<char> by_new(bytes, 1);
        }
        if (blocks.size() > 300) blocks.erase(blocks.begin(), blocks.begin() + random() % 300);
        ++served;
      } catch (const std::exception&) {
        ++refused;
        blocks.clear();
      }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(served, 8'000);
  EXPECT_GT(refused, 0);
  EXPECT_LE(held_bytes(), memory_limit() + cushion_bytes(memory_limit()) + mib);
}

}  // namespace
}  // namespace headroom

#endif
