// Slots locked by a CUDA runtime, of which a stand-in is in this program.
#include "train/page_lock.hpp"

#include <gtest/gtest.h>
#include <map>
#include <utility>

#include "data/slots.hpp"

namespace {

std::map<void*, size_t> registered;
int calls = 0, pending_error = 0;
bool refuses = false;

}  // namespace

extern "C" {
[[gnu::visibility("default")]] int cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  ++calls;
  EXPECT_EQ(flags, 1u);
  if (refuses) return pending_error = 712;
  registered[memory] = bytes;
  return 0;
}
[[gnu::visibility("default")]] int cudaHostUnregister(void* memory) {
  EXPECT_EQ(registered.erase(memory), 1u) << "never registered";
  return 0;
}
[[gnu::visibility("default")]] int cudaGetLastError() { return std::exchange(pending_error, 0); }
}

namespace headroom {
namespace {

class PageLockTest : public testing::Test {
 protected:
  PageLockTest() {
    field_.name = "x";
    field_.dtype = {kDLFloat, 32, 1};
    field_.shape = {1000};
  }
  void SetUp() override { ASSERT_TRUE(cuda_page_lock()); }
  void TearDown() override { refuses = false; }
  std::vector<Field> fields() const { return {field_}; }

  Field field_;
};

TEST_F(PageLockTest, ASlotIsLockedWhileItLives) {
  {
    Slot slot(fields(), 8);
    slot.lock_pages(*cuda_page_lock());
    ASSERT_EQ(registered.size(), 1u);
    const auto& [memory, bytes] = *registered.begin();
    EXPECT_EQ(memory, slot.tensors(0, 8)[0].data);
    EXPECT_GE(bytes, 8 * 1000 * sizeof(float));
  }
  EXPECT_TRUE(registered.empty());
}

TEST_F(PageLockTest, WhatCannotBeLockedIsUsedAsItIsAndLeavesNoErrorBehind) {
  refuses = true;
  const int before = calls;
  {
    Slot slot(fields(), 8);
    slot.lock_pages(*cuda_page_lock());
    EXPECT_EQ(calls, before + 1);
    EXPECT_NE(slot.tensors(0, 8)[0].data, nullptr);
  }
  EXPECT_TRUE(registered.empty());
  EXPECT_EQ(pending_error, 0);
}

}  // namespace
}  // namespace headroom
