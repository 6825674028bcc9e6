#include "memory/cores.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>

namespace headroom {
namespace {

namespace fs = std::filesystem;

// A root folder with the files the kernel would show; every CPU this process may use is a core of its own unless told.
class Cores : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("SLURMD_NODENAME");  // the tests may run as a job
    std::string pattern = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern + "/";
    CPU_ZERO(&allowed_);
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed_, &allowed_), 0);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  int cpus() const { return CPU_COUNT(&allowed_); }

  std::string root_;
  cpu_set_t allowed_;
};

TEST_F(Cores, WithoutTopologyEveryCpuIsACore) { EXPECT_EQ(auto_threads(root_), cpus()); }

TEST_F(Cores, SiblingsOfOneCoreCountOnce) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed_)) continue;
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", "0-63\n");
  }
  EXPECT_EQ(auto_threads(root_), 1);
}

TEST_F(Cores, AQuotaBoundsThemRoundedUp) {
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(auto_threads(root_), 1);
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(auto_threads(root_), std::min(2, cpus()));
}

TEST_F(Cores, NoQuotaBoundsNothing) {
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(auto_threads(root_), cpus());
  write("sys/fs/cgroup/cpu.max", "6400000 100000\n");  // more than there is
  EXPECT_EQ(auto_threads(root_), cpus());
}

TEST_F(Cores, TheFirstVersionOfCgroupsCountsToo) {
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(auto_threads(root_), 1);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(auto_threads(root_), cpus());
}

TEST_F(Cores, NonsenseInTheFilesIsNoQuota) {
  write("sys/fs/cgroup/cpu.max", "lots\n");
  EXPECT_EQ(auto_threads(root_), cpus());
  write("sys/fs/cgroup/cpu.max", "lots 100000\n");
  EXPECT_EQ(auto_threads(root_), cpus());
}

// The machine's own processors, of which `others` run something beside the thread that looks.
std::string stat_with(int others) {
  return "cpu  1 2 3\ncpu0 1 2 3\nctxt 5\nprocs_running " + std::to_string(1 + others) + "\nprocs_blocked 0\n";
}

TEST_F(Cores, AreFreeWhileNobodyElseRuns) {
  write("proc/stat", stat_with(0));
  EXPECT_TRUE(cores_are_free(root_));
  write("proc/stat", stat_with(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))));
  EXPECT_FALSE(cores_are_free(root_));
}

TEST_F(Cores, AreNotFreeWhereAQuotaHoldsThemBack) {
  write("proc/stat", stat_with(0));
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_FALSE(cores_are_free(root_));
}

TEST_F(Cores, AreNotFreeWhereNobodySaysWhatRuns) {
  EXPECT_FALSE(cores_are_free(root_));
  write("proc/stat", "cpu  1 2 3\n");
  EXPECT_FALSE(cores_are_free(root_));
}

}  // namespace
}  // namespace headroom
