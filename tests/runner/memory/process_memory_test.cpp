#include "memory/process_memory.hpp"

#include <gmock/gmock.h>

#include "fake_root.hpp"
#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"

namespace headroom {
namespace {

class ProcessMemoryTest : public FakeRoot {
 protected:
  MemoryUsage usage() const { return read_memory_usage(root_.string()); }
};

TEST_F(ProcessMemoryTest, WithoutCgroupsTheMachineIsShown) {
  EXPECT_EQ(usage().process_bytes, int64_t{831898} * 1024);
  EXPECT_EQ(usage().system_total_bytes, 24 * gib);
  EXPECT_EQ(usage().system_used_bytes, int64_t{25165824 - 19830670} * 1024);
  EXPECT_FALSE(usage().total_is_cgroup);
}

TEST_F(ProcessMemoryTest, TheLineIsTheOneUsersKnow) {
  EXPECT_EQ(memory_line("Step 100", usage()),
            "[Step 100] Memory - Process: 812.4MB (3.3%), System: 5.1/24.0GB (21.2%)");
  MemoryUsage with_device = usage();
  with_device.device = DeviceMemory{.allocated_bytes = gib / 2, .reserved_bytes = 3 * gib / 2};
  EXPECT_EQ(
      memory_line("Step 100", with_device),
      "[Step 100] Memory - Process: 812.4MB (3.3%), System: 5.1/24.0GB (21.2%), GPU: 0.5GB allocated, 1.5GB reserved");
  EXPECT_EQ(memory_line("Start", {}), "[Start] Memory - Process: 0.0MB (0.0%), System: 0.0/0.0GB (0.0%)");
}

TEST_F(ProcessMemoryTest, VersionTwoCountsWithoutFilePages) {
  only_v2("/user.slice/run.scope");
  v2_cgroup("sys/fs/cgroup/user.slice/run.scope", std::to_string(4 * gib), 3 * gib, 2 * gib);
  v2_cgroup("sys/fs/cgroup/user.slice", "max", 9 * gib, 0);
  EXPECT_TRUE(usage().total_is_cgroup);
  EXPECT_EQ(usage().system_total_bytes, 4 * gib);
  EXPECT_EQ(usage().system_used_bytes, gib);
  EXPECT_EQ(memory_line("Step 100", usage()),
            "[Step 100] Memory - Process: 812.4MB (19.8%), System: 1.0/4.0GB (25.0%)");
}

TEST_F(ProcessMemoryTest, EveryAncestorBounds) {
  only_v2("/a/b/c");
  v2_cgroup("sys/fs/cgroup/a/b/c", std::to_string(8 * gib), gib, 0);
  v2_cgroup("sys/fs/cgroup/a/b", "max", 2 * gib, 0);
  v2_cgroup("sys/fs/cgroup/a", std::to_string(6 * gib), 5 * gib, 0);
  EXPECT_EQ(usage().system_total_bytes, 6 * gib);
  EXPECT_EQ(usage().system_used_bytes, 5 * gib);
  v2_cgroup("sys/fs/cgroup/a/b", std::to_string(6 * gib), 2 * gib, 0);
  EXPECT_EQ(usage().system_used_bytes, 5 * gib) << "of two equal limits the fuller one";
}

TEST_F(ProcessMemoryTest, ALimitAboveTheMachineIsNone) {
  only_v2("/a");
  v2_cgroup("sys/fs/cgroup/a", std::to_string(25 * gib), gib, 0);
  EXPECT_FALSE(usage().total_is_cgroup);
  EXPECT_EQ(usage().system_total_bytes, 24 * gib);
}

TEST_F(ProcessMemoryTest, VersionOneCountsTotals) {
  only_v1("/", "/job_7/step_0");
  v1_cgroup("sys/fs/cgroup/memory/job_7/step_0", "9223372036854771712", 2 * gib, gib);
  v1_cgroup("sys/fs/cgroup/memory/job_7", std::to_string(3 * gib), 2 * gib, gib);
  v1_cgroup("sys/fs/cgroup/memory", "9223372036854771712", 20 * gib, gib);
  EXPECT_EQ(usage().system_total_bytes, 3 * gib);
  EXPECT_EQ(usage().system_used_bytes, gib);
  const auto cgroups = memory_cgroups(root_.string());
  ASSERT_EQ(cgroups.size(), 3u);
  EXPECT_EQ(cgroups[0].limit_bytes, std::nullopt);
  EXPECT_EQ(cgroups[1].folder, root_ / "sys/fs/cgroup/memory/job_7");
}

TEST_F(ProcessMemoryTest, AVersionOneParentWithoutHierarchyDoesNotBound) {
  only_v1("/", "/a/b");
  v1_cgroup("sys/fs/cgroup/memory/a/b", std::to_string(8 * gib), gib, 0);
  v1_cgroup("sys/fs/cgroup/memory/a", std::to_string(3 * gib), 0, 0);
  file("sys/fs/cgroup/memory/a/memory.use_hierarchy", "0\n");
  EXPECT_EQ(usage().system_total_bytes, 8 * gib);
  file("sys/fs/cgroup/memory/a/memory.use_hierarchy", "1\n");
  EXPECT_EQ(usage().system_total_bytes, 3 * gib);
}

TEST_F(ProcessMemoryTest, InAContainerTheMountIsThePartThatIsSeen) {
  only_v1("/docker/abc", "/docker/abc/inner");
  v1_cgroup("sys/fs/cgroup/memory/inner", std::to_string(5 * gib), gib, 0);
  v1_cgroup("sys/fs/cgroup/memory", std::to_string(2 * gib), gib, 0);
  EXPECT_EQ(usage().system_total_bytes, 2 * gib);
  v1_cgroup("sys/fs/cgroup", std::to_string(gib), 0, 0);  // beside the mount: not ours
  only_v1("/docker/abc", "/");                            // a namespace of its own shows other paths than the mount
  EXPECT_EQ(usage().system_total_bytes, 2 * gib);
  only_v1("/../..", "/");
  EXPECT_EQ(usage().system_total_bytes, 2 * gib);
}

TEST_F(ProcessMemoryTest, HybridReadsTheOneThatHoldsMemory) {
  file("proc/self/mountinfo",
       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw\n");
  file("proc/self/cgroup", "4:memory:/old\n0::/new\n");
  v1_cgroup("sys/fs/cgroup/memory/old", std::to_string(7 * gib), gib, 0);
  file("sys/fs/cgroup/uni fied/new/cgroup.procs", "1\n");
  EXPECT_EQ(usage().system_total_bytes, 7 * gib);
  // And where memory has moved to the unified tree, that one.
  file("proc/self/cgroup", "3:cpu:/old\n0::/new\n");
  v2_cgroup("sys/fs/cgroup/uni fied/new", std::to_string(512 * mib), 100 * mib, 0);
  EXPECT_EQ(usage().system_total_bytes, 512 * mib);
  EXPECT_EQ(usage().system_used_bytes, 100 * mib);
}

TEST_F(ProcessMemoryTest, OddFilesAreNoReasonToFail) {
  for (const char* text : {"", "\n", "garbage", "0::", "0::/../../..", "4:memory", ":::::", "0::/a\n0::/b"}) {
    only_v2("/");
    file("proc/self/cgroup", text);
    EXPECT_EQ(usage().system_total_bytes, 24 * gib) << text;
  }
  only_v2("/a");
  file("proc/self/mountinfo", "31 23 - cgroup2\n - \ngarbage - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(usage().system_total_bytes, 24 * gib);
  only_v2("/a");
  v2_cgroup("sys/fs/cgroup/a", "many", gib, 0);
  EXPECT_FALSE(usage().total_is_cgroup);
  v2_cgroup("sys/fs/cgroup/a", std::to_string(gib), 10, 1000);  // the counters lag behind each other
  EXPECT_EQ(usage().system_used_bytes, 0);
  EXPECT_EQ(read_memory_usage("/absent").system_total_bytes, 0);
}

TEST_F(ProcessMemoryTest, ThisProcessIsMeasured) {
  const MemoryUsage before = read_memory_usage();
  EXPECT_GT(before.process_bytes, 0);
  EXPECT_GT(before.system_used_bytes, 0);
  EXPECT_GT(before.system_total_bytes, before.process_bytes);
  std::string touched(64 * mib, 'x');
  EXPECT_GT(read_memory_usage().process_bytes - before.process_bytes, 60 * mib) << touched.size();
}

TEST(ProcFile, NumbersStandBehindWholeKeys) {
  EXPECT_EQ(number_after("total_rss_huge 7\ntotal_rss 5\n", "total_rss"), 5);
  EXPECT_EQ(number_after("RssAnon:\t   148 kB", "RssAnon:"), 148);
  EXPECT_EQ(number_after("12\n", ""), 12);
  EXPECT_EQ(number_after("max\n", ""), std::nullopt);
  EXPECT_EQ(number_after("a 99999999999999999999\n", "a"), std::nullopt);
  EXPECT_EQ(number_after("", "a"), std::nullopt);
  EXPECT_EQ(bytes_after("RssAnon:\t   148 kB", "RssAnon:"), 148 * 1024);
  EXPECT_EQ(bytes_after("RssAnon: 9223372036854775807 kB", "RssAnon:"), std::nullopt);
}

}  // namespace
}  // namespace headroom
