// Whose kill was it? In a folder that stands for the machine, with the files of v1, of v2 and of both.
#include "memory/oom_kills.hpp"

#include "fake_root.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr int64_t gib = int64_t{1} << 30;

class OomKillsTest : public FakeRoot {
 protected:
  void SetUp() override {
    FakeRoot::SetUp();
    system_kills(5);
    process(0, "/job/step");
  }
  OomKills kills() const { return OomKills(root_.string(), /*with_log=*/false); }

  void system_kills(int count) { file("proc/vmstat", "oom_kill_not 9\noom_kill " + std::to_string(count) + "\n"); }

  // Where a process is, in the hierarchy of the test.
  void process(int64_t pid, const std::string& path) {
    const std::string folder = "proc/" + (pid == 0 ? "self" : std::to_string(pid));
    file(folder + "/cgroup", is_v1_ ? "3:cpu:/other\n4:memory:" + path + "\n0::/\n" : "0::" + path + "\n");
    file("proc/self/mountinfo", is_v1_ ? "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                       : "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  }
  void use_v1() {
    is_v1_ = true;
    process(0, "/job/step");
  }
  void v1(const std::string& path, int own_kills, int64_t limit, int hits) {
    const std::string folder = "sys/fs/cgroup/memory" + path;
    file(folder + "/memory.oom_control",
         "oom_kill_disable 0\nunder_oom 0\noom_kill " + std::to_string(own_kills) + "\n");
    file(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    file(folder + "/memory.failcnt", std::to_string(hits) + "\n");
  }
  void v2(const std::string& path, int own_kills, int kills_below, const std::string& limit, int hits) {
    const std::string folder = "sys/fs/cgroup" + path, hit = "\noom " + std::to_string(hits) + "\noom_kill ";
    file(folder + "/memory.events", "max 3" + hit + std::to_string(kills_below) + "\noom_group_kill 0\n");
    file(folder + "/memory.events.local", "max 3" + hit + std::to_string(own_kills) + "\noom_group_kill 0\n");
    file(folder + "/memory.max", limit + "\n");
  }
  fs::path v2_folder(const std::string& path) const { return root_ / ("sys/fs/cgroup" + path); }

  bool is_v1_ = false;
};

TEST_F(OomKillsTest, VersionTwoCountsInTheProcessesOwn) {
  v2("/job/step", 1, 1, "max", 0);
  v2("/job", 0, 4, std::to_string(2 * gib), 7);
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  EXPECT_FALSE(oom.claim(10, place)) << "a plain kill";
  v2("/job/step", 2, 2, "max", 0);
  v2("/job", 0, 5, std::to_string(2 * gib), 8);
  system_kills(6);
  const auto kill = oom.claim(10, place);
  ASSERT_TRUE(kill);
  EXPECT_TRUE(kill->certain);
  EXPECT_EQ(kill->cgroup, v2_folder("/job")) << "the one whose limit was met";
  EXPECT_EQ(kill->limit_bytes, 2 * gib);
  EXPECT_FALSE(oom.claim(11, place)) << "one kill has one victim";
}

TEST_F(OomKillsTest, ANeighboursKillBelowTheSameParentIsNotOurs) {
  v2("/job/step", 0, 0, "max", 0);
  v2("/job", 0, 0, std::to_string(gib), 0);
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  v2("/job", 0, 1, std::to_string(gib), 1);  // /job/other lost a process
  system_kills(6);
  EXPECT_FALSE(oom.claim(10, place));
}

TEST_F(OomKillsTest, ACgroupThatWentWithItsProcessIsJudgedByItsParent) {
  v2("/job/step", 0, 0, "max", 0);
  v2("/job", 0, 0, std::to_string(gib), 0);
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  fs::remove_all(v2_folder("/job/step"));
  v2("/job", 0, 1, std::to_string(gib), 1);
  const auto kill = oom.claim(10, place);
  ASSERT_TRUE(kill);
  EXPECT_FALSE(kill->certain);
  EXPECT_EQ(kill->cgroup, v2_folder("/job"));
}

TEST_F(OomKillsTest, AKillThatWasClaimedIsNotClaimedAgainAbove) {
  v2("/job/step", 0, 0, "max", 0);
  v2("/job/worker", 0, 0, "max", 0);
  v2("/job", 0, 0, std::to_string(gib), 0);
  OomKills oom = kills();
  const auto step = oom.place_of(0);
  process(77, "/job/worker");
  const auto worker = oom.place_of(77);
  v2("/job/step", 1, 1, "max", 0);
  v2("/job", 0, 1, std::to_string(gib), 1);
  system_kills(6);
  EXPECT_TRUE(oom.claim(10, step));
  fs::remove_all(v2_folder("/job/worker"));
  EXPECT_FALSE(oom.claim(77, worker)) << "the one kill below /job has its victim";
  v2("/job", 0, 2, std::to_string(gib), 2);
  system_kills(7);
  EXPECT_TRUE(oom.claim(77, worker));
}

TEST_F(OomKillsTest, TheMachineRanOutWhereNoLimitWasMet) {
  v2("/job/step", 0, 0, std::to_string(gib), 3);
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  v2("/job/step", 1, 1, std::to_string(gib), 3);
  const auto kill = oom.claim(10, place);
  ASSERT_TRUE(kill);
  EXPECT_TRUE(kill->certain);
  EXPECT_TRUE(kill->cgroup.empty());
  EXPECT_EQ(kill->limit_bytes, 24 * gib);
}

TEST_F(OomKillsTest, ControllerOfAnAncestorCounts) {
  fs::create_directories(v2_folder("/job/step"));  // no memory controller in there: charges go to /job
  v2("/job", 2, 2, std::to_string(gib), 0);
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  EXPECT_FALSE(oom.claim(10, place));
  v2("/job", 3, 3, std::to_string(gib), 1);
  const auto kill = oom.claim(10, place);
  ASSERT_TRUE(kill);
  EXPECT_TRUE(kill->certain);
}

TEST_F(OomKillsTest, WithoutLocalEventsThoseOfTheWholeCount) {
  v2("/job/step", 0, 0, std::to_string(gib), 0);
  fs::remove(v2_folder("/job/step") / "memory.events.local");
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  EXPECT_FALSE(oom.claim(10, place));
  v2("/job/step", 9, 1, std::to_string(gib), 1);
  fs::remove(v2_folder("/job/step") / "memory.events.local");
  ASSERT_TRUE(oom.claim(10, place));
}

TEST_F(OomKillsTest, VersionOneCounts) {
  use_v1();
  v1("/job/step", 3, gib, 100);
  v1("/job", 0, 4 * gib, 0);
  OomKills oom = kills();
  const auto place = oom.place_of(0);
  EXPECT_FALSE(oom.claim(10, place));
  v1("/job/step", 4, gib, 101);
  const auto kill = oom.claim(10, place);
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->cgroup, root_ / "sys/fs/cgroup/memory/job/step");
  EXPECT_EQ(kill->limit_bytes, gib);
  EXPECT_FALSE(oom.claim(11, place));
}

TEST_F(OomKillsTest, ProcessesInCgroupsOfTheirOwnAreToldApart) {
  v2("/job/step", 0, 0, "max", 0);
  OomKills oom = kills();
  const auto first = oom.place_of(0);
  v2("/job/worker", 7, 7, std::to_string(gib), 1);  // kills from before we saw it
  process(77, "/job/worker");
  const auto second = oom.place_of(77);
  EXPECT_NE(first, second);
  v2("/job/worker", 8, 8, std::to_string(gib), 2);
  EXPECT_FALSE(oom.claim(10, first));
  EXPECT_TRUE(oom.claim(77, second));
}

TEST_F(OomKillsTest, WhoIsAboutToEndHasNotMoved) {
  v2("/job/step", 0, 0, "max", 0);
  v2("/elsewhere", 0, 0, "max", 0);
  OomKills oom = kills();
  process(77, "/job/step");
  const auto place = oom.place_of(77);
  process(77, "/");
  EXPECT_EQ(oom.place_of(77, place), place);
  process(77, "/elsewhere");
  EXPECT_NE(oom.place_of(77, place), place);
  fs::remove_all(root_ / "proc/77");
  EXPECT_EQ(oom.place_of(77, place), place);
}

TEST_F(OomKillsTest, TheSystemsCountIsTheLastResort) {
  OomKills oom = kills();  // no counters anywhere
  const auto place = oom.place_of(0);
  EXPECT_FALSE(oom.claim(10, place));
  system_kills(6);
  const auto kill = oom.claim(10, place);
  ASSERT_TRUE(kill);
  EXPECT_FALSE(kill->certain);
  EXPECT_NE(kill->evidence.find("whole system"), std::string::npos) << kill->evidence;
  EXPECT_FALSE(oom.claim(11, place));
}

TEST_F(OomKillsTest, OldKillsOfTheSystemAreSettled) {
  OomKills oom = kills();
  system_kills(6);
  oom.settle();
  EXPECT_TRUE(oom.claim(10, std::nullopt)) << "its victim may have needed until now to die";
  system_kills(7);
  oom.settle();
  oom.settle();
  EXPECT_FALSE(oom.claim(11, std::nullopt));
}

TEST_F(OomKillsTest, AMachineThatTellsNothingSaysNo) {
  fs::remove_all(root_ / "proc");
  OomKills oom = kills();
  EXPECT_FALSE(oom.place_of(0));
  EXPECT_FALSE(oom.claim(10, std::nullopt));
}

TEST(KernelLogLines, NameVictimAndCgroup) {
  std::string cgroup;
  LoggedKill kill;
  EXPECT_FALSE(
      parse_kill("6,1234,5678,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
                 "oom_memcg=/job,task_memcg=/job/step,task=python3,pid=77,uid=1000\n",
                 cgroup, kill));
  EXPECT_EQ(cgroup, "/job/step");
  EXPECT_TRUE(
      parse_kill("3,1235,5679,-;Memory cgroup out of memory: Killed process 77 (python3) total-vm:221356kB, "
                 "anon-rss:65024kB, file-rss:6488kB, shmem-rss:16kB, UID:0 pgtables:184kB oom_score_adj:0\n",
                 cgroup, kill));
  EXPECT_EQ(kill.pid, 77);
  EXPECT_EQ(kill.held_bytes, (65024 + 16) * 1024);
  EXPECT_EQ(kill.victims_cgroup, "/job/step");
  EXPECT_FALSE(parse_kill("6,1,2,-;oom_reaper: reaped process 77 (python3)", cgroup, kill));
  EXPECT_FALSE(parse_kill("6,1,2,-;Killed process x", cgroup, kill));
  EXPECT_FALSE(parse_kill("", cgroup, kill));
}

}  // namespace
}  // namespace headroom
