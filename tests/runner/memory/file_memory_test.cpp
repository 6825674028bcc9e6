#include "memory/file_memory.hpp"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Storage, IsThatOfTheNearestFolderThatExists) {
  EXPECT_EQ(storage_of("/proc/self/status"), Storage::other);
  EXPECT_EQ(storage_of("/proc/no_such_folder/file"), Storage::other);
  if (!lies_in_memory("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs here";
  EXPECT_EQ(storage_of("/dev/shm"), Storage::memory);
  EXPECT_EQ(storage_of("/dev/shm/no_such_folder/file"), Storage::memory);
}

}  // namespace
}  // namespace headroom
