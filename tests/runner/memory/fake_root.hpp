// A folder that stands for "/": the few files of /proc and of the cgroup mounts that the memory code reads.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>

namespace headroom {

inline constexpr int64_t gib = int64_t{1} << 30, mib = 1 << 20;

class FakeRoot : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("SLURMD_NODENAME");  // the tests may run as a job
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-root-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    file("proc/meminfo", "MemTotal:       25165824 kB\nMemFree:          100 kB\nMemAvailable:   19830670 kB\n");
    file("proc/self/status",
         "Name:\tx\nVmRSS:\t  831898 kB\nRssAnon:\t  700000 kB\nRssFile:\t  100000 kB\nRssShmem:\t   31898 kB\n");
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  void file(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // Folders are below the root, as in "sys/fs/cgroup/job"; `files` bytes of the usage are pages of files.
  void v2_cgroup(const std::string& folder, const std::string& limit, int64_t current, int64_t files) {
    file(folder + "/memory.max", limit + "\n");
    file(folder + "/memory.current", std::to_string(current) + "\n");
    file(folder + "/memory.stat", "anon 1\nfile 99999999\ninactive_file " + std::to_string(files / 2) +
                                      "\nactive_file " + std::to_string(files - files / 2) + "\n");
  }
  void v1_cgroup(const std::string& folder, const std::string& limit, int64_t current, int64_t files) {
    file(folder + "/memory.limit_in_bytes", limit + "\n");
    file(folder + "/memory.usage_in_bytes", std::to_string(current) + "\n");
    file(folder + "/memory.stat", "inactive_file 7\nactive_file 7\ntotal_inactive_file " + std::to_string(files / 2) +
                                      "\ntotal_active_file " + std::to_string(files - files / 2) + "\n");
  }
  // What is mounted where, and which cgroup the process is in.
  void only_v2(const std::string& path) {
    file("proc/self/mountinfo",
         "30 23 0:27 / /proc rw - proc proc rw\n"
         "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    file("proc/self/cgroup", "0::" + path + "\n");
  }
  void only_v1(const std::string& mounted, const std::string& path) {
    file("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 " + mounted +
                                    " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    file("proc/self/cgroup", "3:cpu:/other\n4:memory:" + path + "\n0::/elsewhere\n");
  }
  std::filesystem::path root_;
};

}  // namespace headroom
