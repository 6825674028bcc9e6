#include "memory/monitor.hpp"

#include "fake_root.hpp"
#include "memory/budget.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

class MonitorTest : public FakeRoot {
 protected:
  // A monitor that has looked `times` times since.
  static void wait_for(const Monitor& monitor, int64_t times) {
    const int64_t until = monitor.looks() + times;
    while (monitor.looks() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(MonitorTest, SeesACgroupFillUpAndEmptyAgain) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(2 * gib), gib, 0);
  Monitor monitor(gib, std::chrono::milliseconds(1), root_.string());
  wait_for(monitor, 2);
  EXPECT_FALSE(monitor.is_short());
  EXPECT_EQ(monitor.surroundings().bound_bytes, 2 * gib);
  EXPECT_EQ(monitor.surroundings().left_bytes, gib);
  v2_cgroup("sys/fs/cgroup/job", std::to_string(2 * gib), 2 * gib - 10 * mib, 0);
  wait_for(monitor, 2);
  EXPECT_TRUE(monitor.is_short());
  EXPECT_EQ(monitor.surroundings().left_bytes, 10 * mib);
  v2_cgroup("sys/fs/cgroup/job", std::to_string(2 * gib), gib, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);  // the slope has to calm down
  while (monitor.is_short() && std::chrono::steady_clock::now() < deadline) wait_for(monitor, 1);
  EXPECT_FALSE(monitor.is_short());
}

// What is left below the run's own limit is the allocator's business.
TEST_F(MonitorTest, DoesNotTakeItsOwnLimitForItsSurroundings) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(8 * gib), gib, 0);
  file("proc/self/limits",
       "Limit                     Soft Limit           Hard Limit           Units\n"
       "Max data size             1073741824           unlimited            bytes\n");
  file("proc/self/status", "VmData:\t 1048000 kB\nRssAnon:\t  700000 kB\nRssShmem:\t   31898 kB\n");
  Monitor monitor(0, std::chrono::milliseconds(1), root_.string());
  wait_for(monitor, 2);
  EXPECT_EQ(monitor.surroundings().bound_bytes, 8 * gib);
  EXPECT_FALSE(monitor.is_short());
}

TEST_F(MonitorTest, FillsTheBlackBox) {
  BlackBox box(root_ / "box");
  box.set_phase(Phase::backward);
  box.set_position(7, 1);
  {
    Monitor monitor(3 * gib, std::chrono::milliseconds(1), root_.string());
    monitor.fill(box);
    wait_for(monitor, 3);
  }
  const auto reading = read_black_box(root_ / "box");
  ASSERT_TRUE(reading);
  ASSERT_GE(reading->records.size(), 3u);
  const BlackBoxRecord& last = reading->records.back();
  EXPECT_EQ(last.phase, Phase::backward);
  EXPECT_EQ(last.step, 7);
  EXPECT_EQ(last.limit_bytes, 3 * gib);
  EXPECT_GT(last.held_bytes, 0);
  EXPECT_LE(last.room_bytes, 3 * gib - last.held_bytes);
}

// Between two looks of a slow monitor a neighbour takes nearly everything.
TEST_F(MonitorTest, LooksAgainBeforeMuchIsTakenNearTheBound) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(2 * gib), gib, 0);
  const int64_t held = held_bytes(), limit = held + 200 * mib;
  file("proc/self/status", "RssAnon:\t " + std::to_string(held / 1024) + " kB\nRssShmem:\t 0 kB\n");
  set_memory_limit(limit);
  {
    Monitor monitor(limit, std::chrono::hours(1), root_.string());
    wait_for(monitor, monitor.looks() > 0 ? 0 : 1);
    v2_cgroup("sys/fs/cgroup/job", std::to_string(2 * gib), 2 * gib - 10 * mib, 0);
    look_before_growing(mib);
    EXPECT_EQ(monitor.looks(), 1) << "for a little";
    EXPECT_TRUE(try_to_grow(32 * mib));
    look_before_growing(mib);
    EXPECT_EQ(monitor.looks(), 2) << "for a little after much";
    EXPECT_FALSE(try_to_grow(32 * mib));
    look_before_growing(mib);
    EXPECT_EQ(monitor.looks(), 2) << "for a little after that look";
  }
  look_before_growing(gib);  // reaches no monitor that is gone
  set_memory_limit(0);
}

// Far from it the monitor's own looks come soon enough.
TEST_F(MonitorTest, LooksNoMoreOftenFarFromTheBound) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(64 * gib), gib, 0);
  const int64_t limit = 32 * gib;
  set_memory_limit(limit);
  {
    Monitor monitor(limit, std::chrono::hours(1), root_.string());
    wait_for(monitor, monitor.looks() > 0 ? 0 : 1);
    EXPECT_TRUE(try_to_grow(gib));
    look_before_growing(gib);
    EXPECT_EQ(monitor.looks(), 1);
  }
  set_memory_limit(0);
}

TEST_F(MonitorTest, WorksWithoutABox) {
  Monitor monitor(0, std::chrono::milliseconds(1), root_.string());
  wait_for(monitor, 2);
  EXPECT_GT(monitor.surroundings().bound_bytes, 0);
}

}  // namespace
}  // namespace headroom
