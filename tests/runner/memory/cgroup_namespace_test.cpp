// In a private cgroup namespace paths begin anew at "/", whatever is mounted.
#include <gmock/gmock.h>
#include <unistd.h>

#include "fake_root.hpp"
#include "memory/cgroups.hpp"
#include "memory/limits.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

class CgroupNamespace : public FakeRoot {
 protected:
  // A hierarchy that begins farther up, and where the process is below the root of its namespace.
  void v2_from(const std::string& mounted, const std::string& path) {
    file("proc/self/mountinfo", "31 23 0:28 " + mounted + " /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    file("proc/self/cgroup", "0::" + path + "\n");
  }
  void lists_us(const std::string& folder) { file(folder + "/cgroup.procs", "1\n" + std::to_string(getpid()) + "\n"); }
  Rooms rooms() const { return read_rooms(root_.string()); }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const MemoryCgroup& cgroup : memory_cgroups(root_.string())) list.push_back(cgroup.name);
    return list;
  }
};

TEST_F(CgroupNamespace, TheFolderThatListsTheProcessIsItsOwn) {
  v2_from("/../..", "/");
  v2_cgroup("sys/fs/cgroup/a/b", "max", gib, 0);
  v2_cgroup("sys/fs/cgroup/a/c", std::to_string(3 * gib), gib, 0);
  v2_cgroup("sys/fs/cgroup/a", std::to_string(6 * gib), gib, 0);
  lists_us("sys/fs/cgroup/a/c");
  EXPECT_THAT(names(), ElementsAre("cgroup /a/c (v2)", "cgroup /a (v2)"));
  EXPECT_EQ(rooms().smallest()->bound_bytes, 3 * gib);
  EXPECT_THAT(rooms().unknown, IsEmpty());
  EXPECT_THAT(memory_cgroup_folders(root_.string()).front().string(), EndsWith("/sys/fs/cgroup/a/c"));
}

TEST_F(CgroupNamespace, AFolderIsKeptOnlyWhileItListsTheProcess) {
  v2_from("/..", "/");
  v2_cgroup("sys/fs/cgroup/a", std::to_string(3 * gib), gib, 0);
  v2_cgroup("sys/fs/cgroup/b", std::to_string(4 * gib), gib, 0);
  lists_us("sys/fs/cgroup/a");
  EXPECT_THAT(names(), ElementsAre("cgroup /a (v2)"));
  file("sys/fs/cgroup/a/cgroup.procs", "1\n");
  lists_us("sys/fs/cgroup/b");
  EXPECT_THAT(names(), ElementsAre("cgroup /b (v2)"));
}

TEST_F(CgroupNamespace, APathBelowOrBesideTheNamespaceMustAgree) {
  v2_from("/..", "/inner");
  v2_cgroup("sys/fs/cgroup/job/inner", std::to_string(3 * gib), gib, 0);
  lists_us("sys/fs/cgroup/a/other");
  lists_us("sys/fs/cgroup/job/inner");
  lists_us("sys/fs/cgroup/job");
  EXPECT_THAT(names(), ElementsAre("cgroup /job/inner (v2)"));
  v2_from("/../..", "/../inner");
  EXPECT_THAT(names(), ElementsAre("cgroup /job/inner (v2)"));
}

TEST_F(CgroupNamespace, VersionOneIsSearchedToo) {
  only_v1("/../..", "/");
  v1_cgroup("sys/fs/cgroup/memory/box/job", std::to_string(3 * gib), gib, 0);
  v1_cgroup("sys/fs/cgroup/memory/box", std::to_string(5 * gib), gib, 0);
  lists_us("sys/fs/cgroup/memory/box/job");
  EXPECT_THAT(names(), ElementsAre("cgroup /box/job (v1)", "cgroup /box (v1)"));
}

TEST_F(CgroupNamespace, ABoundThatCannotBeFoundIsUnknown) {
  v2_from("/../..", "/");
  v2_cgroup("sys/fs/cgroup", std::to_string(10 * gib), gib, 0);
  v2_cgroup("sys/fs/cgroup/a/b", std::to_string(3 * gib), gib, 0);
  const Rooms found = rooms();
  EXPECT_THAT(found.unknown, ElementsAre("cgroup (v2)"));
  const MemoryLimit limit = decide_limit("auto", found);
  EXPECT_EQ(found.rooms.at(0).name, "cgroup / (v2)") << "what is mounted is above the process in any case";
  EXPECT_EQ(limit.bytes, found.rooms.at(0).room_bytes / 2);
  EXPECT_EQ(limit.rule, "0.5 of the 9.7 GiB of room in cgroup / (v2); the bound of cgroup (v2) is unknown");
  EXPECT_THAT(memory_cgroup_folders(root_.string()), IsEmpty()) << "none of them is its own";
  EXPECT_THAT(decide_limit("1000", found).rule, EndsWith("; the bound of cgroup (v2) is unknown"));
  EXPECT_THAT(decide_limit("50%", found).rule,
              EndsWith("; the bound of cgroup (v2) is unknown; held to 0.5 of the 9.7 GiB of room in cgroup / (v2)"));
}

TEST_F(CgroupNamespace, AnotherPartOfTheHierarchySaysNothing) {
  v2_from("/../beside", "/");
  v2_cgroup("sys/fs/cgroup", std::to_string(3 * gib), gib, 0);
  EXPECT_THAT(rooms().unknown, ElementsAre("cgroup (v2)"));
  v2_from("/../beside", "/../beside/inner");
  EXPECT_THAT(names(), ElementsAre("cgroup / (v2)"));
}

TEST_F(CgroupNamespace, AHierarchyWithoutTheMemoryControllerBoundsNothing) {
  v2_from("/..", "/");
  file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
  EXPECT_THAT(rooms().unknown, IsEmpty());
  file("sys/fs/cgroup/cgroup.controllers", "cpuset memory io\n");
  EXPECT_THAT(rooms().unknown, ElementsAre("cgroup (v2)"));
}

TEST_F(CgroupNamespace, OfSeveralMountsTheOneThatShowsMostIsRead) {
  file("proc/self/cgroup", "0::/job\n");
  file("proc/self/mountinfo",
       "31 23 0:28 /.. /from/above rw - cgroup2 cgroup2 rw\n"
       "32 23 0:28 /job /part rw - cgroup2 cgroup2 rw\n"
       "33 23 0:28 / /whole rw - cgroup2 cgroup2 rw\n"
       "34 23 0:28 / /hidden rw - cgroup2 cgroup2 rw\n");
  v2_cgroup("part", std::to_string(3 * gib), gib, 0);
  v2_cgroup("whole/job", std::to_string(3 * gib), gib, 0);
  v2_cgroup("whole", std::to_string(2 * gib), gib, 0);
  EXPECT_THAT(names(), ElementsAre("cgroup /job (v2)", "cgroup / (v2)"));
  EXPECT_THAT(memory_cgroup_folders(root_.string()).front().string(), EndsWith("/whole/job"));
}

}  // namespace
}  // namespace headroom
