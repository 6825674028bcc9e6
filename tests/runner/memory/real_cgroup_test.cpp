// In cgroups made for the test: what the kernel says is what the line shows.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.hpp"
#include "memory/cgroups.hpp"
#include "memory/limits.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr int64_t mib = 1 << 20;

class RealCgroupTest : public testing::Test {
 protected:
  // A limited cgroup and one without a limit inside it, below this process's own where it can be made.
  void SetUp() override {
    const auto cgroups = memory_cgroups();
    if (cgroups.empty()) GTEST_SKIP() << "no memory cgroup is mounted here";
    const fs::path parent = cgroups.front().folder;
    limited_ = parent / ("headroom-test-" + std::to_string(::getpid()));
    std::error_code error;
    if (!fs::create_directory(limited_, error)) {
      GTEST_SKIP() << "no cgroup can be made in " << parent << ": " << error.message();
    }
    const bool v1 = fs::exists(parent / "memory.limit_in_bytes");
    const fs::path limit = limited_ / (v1 ? "memory.limit_in_bytes" : "memory.max");
    if (!v1) write(limited_ / "cgroup.subtree_control", "+memory");
    if (!write(limit, std::to_string(256 * mib))) GTEST_SKIP() << "no memory limit can be set in " << limited_;
    inner_ = limited_ / "inner";
    if (!fs::create_directory(inner_, error)) GTEST_SKIP() << "no cgroup can be made in " << limited_;
  }
  void TearDown() override {
    for (const fs::path& folder : {inner_, limited_}) {
      if (!folder.empty()) ::rmdir(folder.c_str());
    }
  }
  static bool write(const fs::path& path, const std::string& text) {
    std::ofstream stream(path);
    stream << text << std::flush;
    return stream.good();
  }
  bool enter_inner() const { return write(inner_ / "cgroup.procs", std::to_string(::getpid())); }
  fs::path limited_, inner_;
};

void* map_touched(int64_t bytes) {
  return ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                -1, 0);
}

// The room of the cgroup that the fixture limits; without one, of nothing.
Room limited_room() {
  for (const Room& room : read_rooms().rooms) {
    if (room.bound_bytes == 256 * mib) return room;
  }
  return {};
}

TEST_F(RealCgroupTest, TheLimitOfAnAncestorIsTheTotal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    MemoryUsage usage[3] = {};
    if (write(inner_ / "cgroup.procs", std::to_string(::getpid()))) {
      usage[0] = read_memory_usage();
      // Mapped, not allocated: it is given back at once under every allocator.
      void* anonymous =
          ::mmap(nullptr, 64 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      usage[1] = read_memory_usage();
      ::munmap(anonymous, 64 * mib);
      // Pages of a file are charged too, and must not count: the kernel drops them when the memory is needed.
      const fs::path file = fs::temp_directory_path() / ("headroom-cgroup-" + std::to_string(::getpid()));
      {
        std::ofstream stream(file);
        const std::string piece(mib, 'y');
        for (int i = 0; i < 64; ++i) stream << piece;
      }
      usage[2] = read_memory_usage();
      fs::remove(file);
    }
    [[maybe_unused]] ssize_t written = ::write(ends[1], usage, sizeof usage);
    ::_exit(0);
  }
  MemoryUsage usage[3];
  ASSERT_EQ(::read(ends[0], usage, sizeof usage), static_cast<ssize_t>(sizeof usage));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  if (usage[0].system_total_bytes == 0) GTEST_SKIP() << "a process cannot be moved into " << inner_;

  EXPECT_TRUE(usage[0].total_is_cgroup);
  EXPECT_EQ(usage[0].system_total_bytes, 256 * mib);
  EXPECT_GT(usage[1].system_used_bytes - usage[0].system_used_bytes, 60 * mib);
  EXPECT_LT(usage[1].system_used_bytes - usage[0].system_used_bytes, 80 * mib);
  EXPECT_LT(usage[2].system_used_bytes - usage[0].system_used_bytes, 32 * mib);
}

TEST_F(RealCgroupTest, AutoIsNineTenthsOfTheRoom) {
  Child child([&](Child& self) {
    self.tell(enter_inner());
    self.tell(limited_room().room_bytes);
    self.tell(*decide_limit("auto", read_rooms()).bytes);
    map_touched(100 * mib);
    self.tell(limited_room().room_bytes);
    self.tell(read_rooms().held_bytes);
  });
  if (child.hear() == 0) GTEST_SKIP() << "a process cannot be moved into " << inner_;
  const int64_t room = child.hear(), limit = child.hear();
  EXPECT_GT(room, 250 * mib);
  EXPECT_LE(room, 256 * mib);
  EXPECT_NEAR(static_cast<double>(limit), 0.9 * static_cast<double>(room), 4 * mib);
  EXPECT_NEAR(static_cast<double>(child.hear()), static_cast<double>(room), 4 * mib) << "U may grow into its room";
  EXPECT_GE(child.hear(), 100 * mib);
}

TEST_F(RealCgroupTest, APrivateCgroupNamespaceHidesNoLimit) {
  Child child([&](Child& self) {
    self.tell(enter_inner());
    self.tell(::unshare(CLONE_NEWCGROUP) == 0);
    self.tell(limited_room().room_bytes);
    self.tell(static_cast<int64_t>(read_rooms().unknown.size()));
    self.tell(*decide_limit("auto", read_rooms()).bytes);
  });
  if (child.hear() == 0) GTEST_SKIP() << "a process cannot be moved into " << inner_;
  if (child.hear() == 0) GTEST_SKIP() << "no cgroup namespace can be made here";
  EXPECT_GT(child.hear(), 250 * mib);
  EXPECT_EQ(child.hear(), 0) << "unknown bounds";
  EXPECT_LT(child.hear(), 256 * mib);
}

// Another process holds 64 MiB beside it: what is left can be used up, and not much more.
TEST_F(RealCgroupTest, TheKernelAgreesAboutTheRoom) {
  Child other([&](Child& self) {
    self.tell(enter_inner());
    map_touched(64 * mib);
    self.tell();
    self.hear();
  });
  if (other.hear() == 0) GTEST_SKIP() << "a process cannot be moved into " << inner_;
  other.hear();
  Child child([&](Child& self) {
    enter_inner();
    const int64_t growth = limited_room().room_bytes - *held_bytes_of();
    self.tell(growth);
    map_touched(growth - 8 * mib);
    self.tell();
    map_touched(16 * mib);
    self.tell();
  });
  const int64_t growth = child.hear();
  EXPECT_LT(growth, 193 * mib);
  EXPECT_GT(growth, 180 * mib);
  EXPECT_NO_THROW(child.hear()) << "killed inside its room";
  EXPECT_THROW(child.hear(), std::runtime_error) << "let beyond its room";
  const int status = child.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

}  // namespace
}  // namespace headroom
