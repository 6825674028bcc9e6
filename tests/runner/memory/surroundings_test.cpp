#include <thread>

#include "fake_root.hpp"
#include "memory/monitor.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

// Others have taken half of what there was.
Surroundings with(int64_t left_bytes, double bytes_per_s = 0, double stalled_percent = 0) {
  Surroundings s;
  s.left_bytes = left_bytes;
  s.bound_bytes = 100 * gib;
  s.taken_bytes = 50 * gib;
  s.margin_bytes = 5 * gib;
  s.bytes_per_s = bytes_per_s;
  s.stalled_percent = stalled_percent;
  return s;
}

TEST(IsShort, WhenOthersLeaveLittleOrTakeFastOrProcessesStall) {
  EXPECT_FALSE(is_short(with(6 * gib)));
  EXPECT_TRUE(is_short(with(4 * gib)));
  EXPECT_TRUE(is_short(with(40 * gib, 9.0 * gib)));
  EXPECT_FALSE(is_short(with(40 * gib, 7.0 * gib)));
  EXPECT_FALSE(is_short(with(40 * gib, -9.0 * gib)));
  EXPECT_TRUE(is_short(with(14 * gib, 0, 11)));
  EXPECT_FALSE(is_short(with(16 * gib, 0, 11)));
  EXPECT_FALSE(is_short({}));
}

TEST(IsShort, NotByWhatOthersHeldBefore) {
  Surroundings s = with(1 * gib, 9.0 * gib, 50);
  s.taken_bytes = 0;
  EXPECT_FALSE(is_short(s));
}

TEST(SurroundingsText, SaysWhatThereIsToSay) {
  Surroundings s = with(2 * gib);
  s.bound_name = "system";
  s.taken_bytes = 0;
  EXPECT_EQ(surroundings_text(s), "2.0 GiB left of 100.0 GiB in system");
  s.taken_bytes = gib;
  s.bytes_per_s = 512.0 * mib;
  s.stalled_percent = 12.3;
  EXPECT_EQ(surroundings_text(s),
            "2.0 GiB left of 100.0 GiB in system, others took 1.0 GiB, 512.0 MiB/s now, processes stalled for 12 % of "
            "the time");
}

class SurroundingsTest : public FakeRoot {
 protected:
  // A cgroup of 1 GiB in which the run holds `own_bytes` and others `others_bytes`.
  void hold(int64_t own_bytes, int64_t others_bytes) {
    v2_cgroup("sys/fs/cgroup/job", std::to_string(gib), own_bytes + others_bytes, 0);
    file("proc/self/status", "RssAnon: " + std::to_string(own_bytes / 1024) + " kB\nRssShmem: 0 kB\n");
  }
};

TEST_F(SurroundingsTest, AConstantNeighbourAndTheRunsOwnGrowthAreNoShortage) {
  only_v2("/job");
  hold(20 * mib, 895 * mib);
  SurroundingsReader reader(116 * mib, root_.string());
  EXPECT_FALSE(is_short(reader.look()));
  for (int64_t own = 20; own <= 116; own += 8) {
    hold(own * mib, 895 * mib);
    const Surroundings now = reader.look();
    EXPECT_FALSE(is_short(now)) << own << " MiB: " << surroundings_text(now);
    EXPECT_GT(now.ceiling_bytes, 116 * mib) << "nobody takes anything";
  }
}

TEST_F(SurroundingsTest, TheCeilingFollowsTheRoomThatOthersLeave) {
  only_v2("/job");
  hold(100 * mib, 0);
  SurroundingsReader reader(900 * mib, root_.string());
  const int64_t before = reader.look().ceiling_bytes;
  EXPECT_GE(before, 900 * mib);
  hold(100 * mib, 400 * mib);
  EXPECT_EQ(reader.look().ceiling_bytes, before - 400 * mib);
}

TEST_F(SurroundingsTest, TellsWhatOthersTakeSoonWhereTheyTakeFast) {
  only_v2("/job");
  hold(100 * mib, 0);
  SurroundingsReader reader(gib - gib / 10, root_.string());
  const int64_t alone = reader.look().ceiling_bytes;
  const auto after_a_while = [&](int64_t others_bytes) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    hold(100 * mib, others_bytes);
    return reader.look();
  };
  EXPECT_EQ(after_a_while(mib / 4).soon_bytes, 0) << "the margin is enough for that";
  const Surroundings fast = after_a_while(400 * mib);
  EXPECT_GT(fast.soon_bytes, 50 * mib);
  EXPECT_EQ(fast.ceiling_bytes, alone - 400 * mib) << "what they have not taken yet is nobody's";
  after_a_while(400 * mib);
  EXPECT_EQ(after_a_while(400 * mib).soon_bytes, 0) << "they take no more";
  EXPECT_EQ(after_a_while(0).soon_bytes, 0) << "they give back";
}

// For want of a descriptor, say.
TEST_F(SurroundingsTest, WhatCannotBeReadChangesNothing) {
  only_v2("/job");
  hold(500 * mib, 100 * mib);
  SurroundingsReader reader(900 * mib, root_.string());
  const Surroundings before = reader.look();
  ASSERT_LT(before.ceiling_bytes, gib);
  file("proc/self/status", "");
  Surroundings now = reader.look();
  EXPECT_EQ(now.ceiling_bytes, before.ceiling_bytes);
  EXPECT_EQ(now.left_bytes, before.left_bytes);
  set_children_bytes(mib);  // known all the same
  now = reader.look();
  set_children_bytes(0);
  EXPECT_EQ(now.ceiling_bytes, before.ceiling_bytes);
  EXPECT_EQ(now.left_bytes, before.left_bytes);
  hold(500 * mib, 100 * mib);
  std::filesystem::remove(root_ / "sys/fs/cgroup/job/memory.max");
  EXPECT_EQ(reader.look().ceiling_bytes, before.ceiling_bytes);
}

TEST_F(SurroundingsTest, PagesOfFilesThatCannotBeToldAreNotUsed) {
  only_v2("/job");
  const auto with_files = [this] {
    hold(100 * mib, 100 * mib);
    v2_cgroup("sys/fs/cgroup/job", std::to_string(gib), 900 * mib, 700 * mib);
  };
  with_files();
  SurroundingsReader reader(600 * mib, root_.string());
  const int64_t before = reader.look().ceiling_bytes;
  ASSERT_LT(before, gib);
  std::filesystem::remove(root_ / "sys/fs/cgroup/job/memory.stat");
  std::filesystem::create_directory(root_ / "sys/fs/cgroup/job/memory.stat");  // is there, and cannot be read
  EXPECT_EQ(reader.look().ceiling_bytes, before);
}

TEST_F(SurroundingsTest, FilesThatTheRunOpensAreNotTakenByOthers) {
  only_v2("/job");
  hold(800 * mib, 0);
  SurroundingsReader reader(900 * mib, root_.string());
  const int64_t before = reader.look().ceiling_bytes;
  v2_cgroup("sys/fs/cgroup/job", std::to_string(gib), 1000 * mib, 0);
  std::ofstream(root_ / "sys/fs/cgroup/job/memory.stat", std::ios::app) << "slab_reclaimable " << 200 * mib << "\n";
  const Surroundings now = reader.look();
  EXPECT_FALSE(is_short(now)) << surroundings_text(now);
  EXPECT_EQ(now.ceiling_bytes, before);
}

TEST_F(SurroundingsTest, ALimitFarBelowTheRoomLeavesOthersTheRest) {
  only_v2("/job");
  hold(20 * mib, 0);
  SurroundingsReader reader(100 * mib, root_.string());
  reader.look();
  hold(90 * mib, 700 * mib);
  const Surroundings now = reader.look();
  EXPECT_GT(now.ceiling_bytes, 100 * mib);
  EXPECT_GT(now.left_bytes, now.margin_bytes);
}

}  // namespace
}  // namespace headroom
