#include "data/block_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

#include "memory/ledger.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {
namespace {

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

}  // namespace
}  // namespace headroom
