#include "memory/limits.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include "child.hpp"
#include "error.hpp"
#include "fake_root.hpp"
#include "memory/readable.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// FakeRoot's machine: 24 GiB with 19830670 kB available; its process holds 731898 kB.
constexpr int64_t held = int64_t{700000 + 31898} * 1024, available = int64_t{19830670} * 1024;

class LimitsTest : public FakeRoot {
 protected:
  Rooms rooms() const { return read_rooms(root_.string()); }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const Room& room : rooms().rooms) list.push_back(room.name);
    return list;
  }
  void own_limits(const std::string& data, const std::string& address_space) {
    file("proc/self/limits",
         "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max data size             " +
             data +
             "            unlimited            bytes     \n"
             "Max address space         " +
             address_space + "            unlimited            bytes     \n");
    file("proc/self/status",
         "VmSize:\t 4000000 kB\nVmData:\t 1000000 kB\nRssAnon:\t  700000 kB\nRssShmem:\t   31898 kB\n");
  }
};

TEST_F(LimitsTest, WithoutLimitsTheMachineIsTheRoom) {
  EXPECT_THAT(names(), ElementsAre("system"));
  EXPECT_EQ(rooms().held_bytes, held);
  EXPECT_EQ(rooms().rooms[0].bound_bytes, 24 * gib);
  EXPECT_EQ(rooms().rooms[0].room_bytes, available + held);
  EXPECT_THAT(rooms().unset, ElementsAre("RLIMIT_DATA", "RLIMIT_AS"));
}

TEST_F(LimitsTest, VersionTwoCountsWhatOthersHoldWithoutFilePages) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(8 * gib), 5 * gib, 2 * gib);
  EXPECT_THAT(names(), ElementsAre("cgroup /job (v2)", "system"));
  EXPECT_EQ(rooms().rooms[0].bound_bytes, 8 * gib);
  EXPECT_EQ(rooms().rooms[0].used_bytes, 3 * gib);
  EXPECT_EQ(rooms().rooms[0].room_bytes, 8 * gib - (3 * gib - held));
}

TEST_F(LimitsTest, NamesAndInodesThatTheKernelKeepsAreNotUsed) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(8 * gib), 5 * gib, 2 * gib);
  std::ofstream(root_ / "sys/fs/cgroup/job/memory.stat", std::ios::app)
      << "slab_reclaimable " << gib << "\nslab_unreclaimable " << gib << "\n";
  EXPECT_EQ(rooms().rooms[0].used_bytes, 2 * gib);
}

TEST_F(LimitsTest, EveryAncestorHasARoom) {
  only_v2("/a/b/c");
  v2_cgroup("sys/fs/cgroup/a/b/c", std::to_string(8 * gib), gib, 0);
  v2_cgroup("sys/fs/cgroup/a/b", "max", 2 * gib, 0);
  v2_cgroup("sys/fs/cgroup/a", std::to_string(6 * gib), 5 * gib, 0);
  EXPECT_THAT(names(), ElementsAre("cgroup /a/b/c (v2)", "cgroup /a (v2)", "system"));
  EXPECT_THAT(rooms().unset, ElementsAre("cgroup /a/b (v2)", "RLIMIT_DATA", "RLIMIT_AS"));
  EXPECT_EQ(rooms().smallest()->name, "cgroup /a (v2)");
  EXPECT_NE(rooms().rooms[0].scope, rooms().rooms[1].scope);
}

TEST_F(LimitsTest, VersionOneCountsTotals) {
  only_v1("/", "/job_7/step_0");
  v1_cgroup("sys/fs/cgroup/memory/job_7/step_0", "9223372036854771712", 2 * gib, gib);
  v1_cgroup("sys/fs/cgroup/memory/job_7", std::to_string(3 * gib), 2 * gib, gib);
  v1_cgroup("sys/fs/cgroup/memory", "9223372036854771712", 20 * gib, gib);
  EXPECT_THAT(names(), ElementsAre("cgroup /job_7 (v1)", "system"));
  EXPECT_EQ(rooms().rooms[0].room_bytes, 3 * gib - (gib - held));
  EXPECT_THAT(rooms().unset, ElementsAre("cgroup /job_7/step_0 (v1)", "cgroup / (v1)", "RLIMIT_DATA", "RLIMIT_AS"));
}

TEST_F(LimitsTest, HybridHasTheRoomsOfBoth) {
  file("proc/self/mountinfo",
       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  file("proc/self/cgroup", "4:memory:/old\n0::/new\n");
  v1_cgroup("sys/fs/cgroup/memory/old", std::to_string(7 * gib), gib, 0);
  v2_cgroup("sys/fs/cgroup/unified/new", std::to_string(2 * gib), gib, 0);
  EXPECT_THAT(names(), ElementsAre("cgroup /old (v1)", "cgroup /new (v2)", "system"));
}

TEST_F(LimitsTest, MemoryHighIsARoomButNoHardBound) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(8 * gib), gib, 0);
  file("sys/fs/cgroup/job/memory.high", std::to_string(4 * gib) + "\n");
  EXPECT_THAT(names(), ElementsAre("cgroup /job (v2)", "cgroup /job (v2) memory.high", "system"));
  EXPECT_EQ(rooms().smallest()->bound_bytes, 4 * gib);
  EXPECT_EQ(rooms().smallest_bound()->bound_bytes, 8 * gib);
  file("sys/fs/cgroup/job/memory.high", "max\n");
  EXPECT_THAT(names(), ElementsAre("cgroup /job (v2)", "system"));
}

TEST_F(LimitsTest, LimitsBelowUseLeaveNothing) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(gib), 5 * gib, 0);
  EXPECT_EQ(rooms().rooms[0].room_bytes, 0);
  EXPECT_EQ(decide_limit("auto", rooms()).bytes, 1);
  v2_cgroup("sys/fs/cgroup/job", "0", gib, 0);
  EXPECT_EQ(rooms().rooms[0].bound_bytes, 0);
}

TEST_F(LimitsTest, WhatACgroupIsNotChargedForAddsNoRoom) {
  only_v2("/job");
  v2_cgroup("sys/fs/cgroup/job", std::to_string(gib), held / 2, 0);  // moved in after it had grown
  EXPECT_EQ(rooms().rooms[0].room_bytes, gib);
}

TEST_F(LimitsTest, ResourceLimitsCountAddressSpace) {
  own_limits("3221225472", "6442450944");
  EXPECT_THAT(names(), ElementsAre("system", "RLIMIT_DATA", "RLIMIT_AS"));
  EXPECT_EQ(rooms().rooms[1].bound_bytes, 3 * gib);
  EXPECT_EQ(rooms().rooms[1].room_bytes, 3 * gib - (int64_t{1000000} * 1024 - held));
  EXPECT_EQ(rooms().rooms[2].room_bytes, 6 * gib - (int64_t{4000000} * 1024 - held));
  EXPECT_EQ(rooms().rooms[1].scope, "") << "nobody else is under it";
  own_limits("unlimited", "unlimited");
  EXPECT_THAT(names(), ElementsAre("system"));
}

TEST_F(LimitsTest, StrictAccountingIsABound) {
  file("proc/meminfo",
       "MemTotal: 25165824 kB\nMemAvailable: 19830670 kB\nCommitLimit: 4194304 kB\nCommitted_AS: 1048576 kB\n");
  file("proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_THAT(names(), ElementsAre("system"));
  file("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_THAT(names(), ElementsAre("system", "system CommitLimit"));
  EXPECT_EQ(rooms().rooms[1].room_bytes, 4 * gib - (gib - held));
}

TEST_F(LimitsTest, SwapIsShownAndNotCounted) {
  const int64_t before = rooms().rooms[0].room_bytes;
  file("proc/meminfo",
       "MemTotal: 25165824 kB\nMemAvailable: 19830670 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n");
  EXPECT_EQ(rooms().swap_total_bytes, 2 * gib);
  EXPECT_EQ(rooms().swap_free_bytes, gib);
  EXPECT_EQ(rooms().rooms[0].room_bytes, before);
}

TEST_F(LimitsTest, OddFilesAreNoReasonToFail) {
  only_v2("/job");
  for (const char* text : {"", "many", "-5", "99999999999999999999999", "9223372036854771712", "\n\n"}) {
    file("sys/fs/cgroup/job/memory.current", "1000\n");
    file("sys/fs/cgroup/job/memory.max", text);
    const Rooms found = rooms();
    EXPECT_GE(found.smallest()->room_bytes, 0) << text;
    EXPECT_EQ(found.rooms.size(), 1u) << text;
  }
  for (const char* text : {"", "MemTotal:\n", "MemTotal: 9223372036854775807 kB\nMemAvailable: 1 kB\n", "garbage"}) {
    file("proc/meminfo", text);
    file("proc/self/status", text);
    file("proc/self/limits", text);
    EXPECT_EQ(rooms().held_bytes, 0) << text;
  }
  const Rooms nothing = read_rooms("/absent");
  EXPECT_EQ(nothing.smallest(), nullptr);
  for (const char* wanted : {"auto", "80%", "off"}) EXPECT_EQ(decide_limit(wanted, nothing).bytes, std::nullopt);
  EXPECT_EQ(decide_limit("1000", nothing).bytes, 1000);
}

Rooms two_rooms() {
  Rooms rooms;
  rooms.rooms = {
      Room{.name = "job", .scope = "1:7", .bound_bytes = 8 * gib, .used_bytes = 0, .room_bytes = 8 * gib},
      Room{.name = "system", .scope = "machine", .bound_bytes = 24 * gib, .used_bytes = 0, .room_bytes = 10 * gib}};
  return rooms;
}

TEST(DecideLimit, AutoIsNineTenthsOfTheSmallestRoom) {
  const MemoryLimit limit = decide_limit("auto", two_rooms());
  EXPECT_EQ(limit.bytes, 8 * gib - 8 * gib / 10);
  EXPECT_EQ(limit.rule, "0.9 of the 8.0 GiB of room in job");
}

TEST(DecideLimit, WhatOthersReservedCanMakeAnotherRoomTheSmallest) {
  Rooms rooms = two_rooms();
  rooms.rooms[1].reserved_bytes = 4 * gib;
  const MemoryLimit limit = decide_limit("auto", rooms);
  EXPECT_EQ(limit.bytes, 9 * gib - 4 * gib);
  EXPECT_EQ(limit.rule, "0.9 of the 10.0 GiB of room in system, less 4.0 GiB reserved by other runs");
}

TEST(DecideLimit, WhereOthersReservedEverythingThereIsALimit) {
  Rooms rooms = two_rooms();
  rooms.rooms[1].reserved_bytes = INT64_MAX;
  EXPECT_EQ(decide_limit("auto", rooms).bytes, 1) << "0 is no limit: to set_memory_limit(), and to a sweep";
  EXPECT_EQ(decide_limit("1e-15%", two_rooms()).bytes, 1);
}

TEST(DecideLimit, AShareIsOfTheSmallestHardBound) {
  Rooms rooms = two_rooms();
  EXPECT_EQ(decide_limit("75%", rooms).bytes, 6 * gib);
  EXPECT_EQ(decide_limit("75%", rooms).rule, "75% of 8.0 GiB, the bound of job");
  EXPECT_EQ(decide_limit("12.5%", rooms).bytes, gib);
  rooms.rooms[0].hard = false;
  EXPECT_EQ(decide_limit("75%", rooms).bytes, 18 * gib);
  EXPECT_THAT(decide_limit("75%", rooms).rule, HasSubstr("above the 8.0 GiB that are free in job now"));
}

TEST(DecideLimit, BytesAreTakenAtTheirWord) {
  EXPECT_EQ(decide_limit("1073741824", two_rooms()).bytes, gib);
  EXPECT_EQ(decide_limit("1073741824", two_rooms()).rule, "as told");
  Rooms rooms = two_rooms();
  rooms.rooms[0].hard = false;  // slows it down and ends nothing
  EXPECT_EQ(decide_limit("10737418240", rooms).bytes, 10 * gib);
  EXPECT_EQ(decide_limit("12884901888", rooms).rule, "as told; above the 8.0 GiB that are free in job now");
}

TEST(DecideLimit, NothingIsTakenAtItsWordThatItsCgroupDoesNotHave) {
  Rooms rooms = two_rooms();
  const int64_t share = 8 * gib - 8 * gib / 10;
  EXPECT_EQ(decide_limit("10737418240", rooms).bytes, share);
  EXPECT_EQ(decide_limit("10737418240", rooms).rule,
            "as told; above the bound of job, 8.0 GiB; held to 0.9 of the 8.0 GiB of room in job");
  EXPECT_EQ(decide_limit("100%", rooms).bytes, share);
  rooms.rooms[0].reserved_bytes = 4 * gib;  // by runs that may hold less in the end
  EXPECT_EQ(decide_limit("10737418240", rooms).bytes, share);
  rooms.rooms[0].room_bytes = 5 * gib;
  EXPECT_EQ(decide_limit("10737418240", rooms).bytes, 5 * gib - gib / 2);
  EXPECT_EQ(limit_if_alone("10737418240", rooms).bytes, share);
  EXPECT_EQ(limit_if_alone("auto", rooms).bytes, share);
}

// Who waited for more of an rlimit would wait for itself.
TEST(DecideLimit, AloneAProcessHasNoMoreOfItsRlimits) {
  Rooms rooms;
  rooms.rooms = {Room{.name = "system", .scope = "machine", .bound_bytes = 24 * gib, .room_bytes = 10 * gib},
                 Room{.name = "RLIMIT_DATA", .bound_bytes = 8 * gib, .room_bytes = 5 * gib}};
  EXPECT_EQ(limit_if_alone("auto", rooms).bytes, 5 * gib - gib / 2);
}

TEST(DecideLimit, OffIsNoLimit) {
  EXPECT_EQ(decide_limit("off", two_rooms()).bytes, std::nullopt);
  EXPECT_THAT(decide_limit("off", two_rooms()).rule, HasSubstr("off"));
}

TEST(DecideLimit, AnythingElseIsBadInput) {
  for (const char* text : {"", "0", "-1", "8 GiB", "0%", "101%", "%", "nan%", "1e3", "Auto", "9223372036854775808"}) {
    try {
      decide_limit(text, two_rooms());
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::bad_input) << text;
    }
  }
}

TEST(SizeText, IsShortAndReadable) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(size_text(3 * gib + gib / 10), "3.1 GiB");
  EXPECT_EQ(size_text(-mib), "-1.0 MiB");
  EXPECT_EQ(size_text(INT64_MAX), "8.0 EiB");
}

TEST(HeldBytes, AreThoseOfAnyProcess) {
  Child child([](Child& self) {
    self.hear();
    ::mmap(nullptr, 64 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    self.tell();
    self.hear();
  });
  const int64_t before = held_bytes_of(child.id()).value();
  child.tell();
  child.hear();
  EXPECT_GE(held_bytes_of(child.id()).value() - before, 63 * mib);
  const pid_t id = child.id();
  child.kill();
  EXPECT_EQ(held_bytes_of(id), std::nullopt);
}

}  // namespace
}  // namespace headroom
