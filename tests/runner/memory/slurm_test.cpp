// A Slurm job's memory and CPUs, as slurmd tells them to the processes that it starts.
#include "memory/slurm.hpp"

#include <array>
#include <gmock/gmock.h>
#include <map>
#include <vector>

#include "child.hpp"
#include "fake_root.hpp"
#include "memory/cores.hpp"
#include "memory/limits.hpp"
#include "memory/reservations.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Slurm : public FakeRoot {
 protected:
  void SetUp() override {
    FakeRoot::SetUp();
    for (const char* name : names) {
      if (const char* value = getenv(name)) before_[name] = value;
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const char* name : names) {
      unsetenv(name);
      if (before_.contains(name)) setenv(name, before_[name].c_str(), 1);
    }
    FakeRoot::TearDown();
  }
  static void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> rooms() const {
    std::vector<std::string> list;
    for (const Room& room : read_rooms(root_.string()).rooms) list.push_back(room.name);
    return list;
  }

 private:
  static constexpr std::array names{"SLURMD_NODENAME",   "SLURM_JOB_ID",       "SLURM_MEM_PER_NODE",
                                    "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK"};
  std::map<std::string, std::string> before_;
};

TEST_F(Slurm, TheJobsMemoryIsABoundThatKills) {
  set({{"SLURMD_NODENAME", "n1"}, {"SLURM_JOB_ID", "123"}, {"SLURM_MEM_PER_NODE", "4096"}});
  EXPECT_THAT(rooms(), ElementsAre("SLURM_MEM_PER_NODE of job 123", "system"));
  const Rooms found = read_rooms(root_.string());
  EXPECT_EQ(found.rooms[0].bound_bytes, 4 * gib);
  EXPECT_EQ(found.rooms[0].room_bytes, 4 * gib);
  EXPECT_TRUE(found.rooms[0].kills());
  EXPECT_EQ(decide_limit("auto", found).bytes, 4 * gib - 4 * gib / 10);
  const MemoryLimit told = decide_limit(std::to_string(8 * gib), found);
  EXPECT_EQ(told.bytes, 4 * gib - 4 * gib / 10);
  EXPECT_THAT(told.rule, HasSubstr("of room in SLURM_MEM_PER_NODE of job 123"));
}

TEST_F(Slurm, AnotherRunOfTheJobCountsWithWhatItHolds) {
  set({{"SLURMD_NODENAME", "n1"}, {"SLURM_JOB_ID", "123"}, {"SLURM_MEM_PER_NODE", "8192"}});
  Rooms found = read_rooms(root_.string());
  const OtherRun other{.reserved_bytes = 4 * gib, .held_bytes = 3 * gib, .scopes = {"slurm:123"}};
  set_aside(found, {other});
  EXPECT_EQ(found.rooms[0].reserved_bytes, 4 * gib);
  EXPECT_EQ(found.rooms[1].reserved_bytes, gib) << "the system's use has the rest";
}

TEST_F(Slurm, ARunTellsOthersOfItsJob) {
  setenv("HEADROOM_RESERVATIONS", (root_ / "reservations").c_str(), 1);
  set({{"SLURMD_NODENAME", "n1"}, {"SLURM_JOB_ID", "123"}, {"SLURM_MEM_PER_NODE", "8192"}});
  Child child([](Child& self) {
    const Reservation reservation = Reservation::claim("other", gib);
    self.tell();
    self.hear();
  });
  child.hear();
  const std::vector<OtherRun> runs = other_runs();
  unsetenv("HEADROOM_RESERVATIONS");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_THAT(runs[0].scopes, testing::Contains("slurm:123"));
}

TEST_F(Slurm, MemoryForEachCpuIsForAllCpusOfTheMachine) {
  set({{"SLURMD_NODENAME", "n1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_CPU", "1024"}, {"SLURM_CPUS_ON_NODE", "3"}});
  const auto memory = slurm_memory();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->name, "SLURM_MEM_PER_CPU of job 7");
  EXPECT_EQ(memory->bytes, 3 * gib);
}

TEST_F(Slurm, AShellOfSallocIsNotOnTheJobsMachine) {
  set({{"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_NODE", "1024"}, {"SLURM_CPUS_PER_TASK", "1"}});
  EXPECT_FALSE(slurm_memory());
  EXPECT_EQ(slurm_cpus(), 0);
}

TEST_F(Slurm, AllOfTheMachineAndNonsenseAreNoBound) {
  for (const char* text : {"0", "-4", "lots", "4096M", "", "99999999999999999999", "9223372036854775807"}) {
    set({{"SLURMD_NODENAME", "n1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_NODE", text}});
    EXPECT_FALSE(slurm_memory()) << text;
    EXPECT_THAT(rooms(), ElementsAre("system")) << text;
  }
}

TEST_F(Slurm, ThreadsAreAtMostTheCpusOfTheTask) {
  const int cores = auto_threads(root_.string() + "/");
  set({{"SLURMD_NODENAME", "n1"}, {"SLURM_CPUS_ON_NODE", "1"}});
  EXPECT_EQ(auto_threads(root_.string() + "/"), 1);
  set({{"SLURM_CPUS_PER_TASK", "100000"}});
  EXPECT_EQ(auto_threads(root_.string() + "/"), cores);
}

}  // namespace
}  // namespace headroom
