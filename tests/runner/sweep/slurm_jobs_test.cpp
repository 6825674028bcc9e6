#include "sweep/slurm_jobs.hpp"

#include <gtest/gtest.h>
#include <sstream>
#include <stdlib.h>

namespace headroom {
namespace {

// A line of squeue_format.
std::string line(const std::string& id, const std::string& status, const std::string& state, const std::string& reason,
                 const std::string& trial) {
  const auto padded = [](std::string text, size_t width) { return text + std::string(width - text.size(), ' '); };
  return padded(id, 20) + padded(status, 12) + padded(state, 24) + padded(reason, 60) + padded(trial, 400) + "\n";
}

TEST(SlurmJobs, ALineOfSqueueIsAJob) {
  const auto jobs =
      read_jobs(line("12", "0", "PENDING", "launch failed requeued held", "003_batch_size=8") +
                line("13", "19200", "FAILED", "NonZeroExitCode", "004_batch_size=16") + "\nslurm: noise\n");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].id, 12);
  EXPECT_EQ(jobs[0].reason, "launch failed requeued held");
  EXPECT_EQ(jobs[0].trial, "003_batch_size=8");
  EXPECT_TRUE(jobs[0].is_waiting());
  EXPECT_FALSE(jobs[0].is_over());
  EXPECT_TRUE(jobs[1].is_over());
  EXPECT_EQ(jobs[1].exit_code(), 75);
}

TEST(SlurmJobs, WhatIsRequeuedIsNotOver) {
  for (const char* state : {"COMPLETING", "PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED", "a word of a later Slurm"})
    EXPECT_FALSE((SlurmJob{.id = 1, .trial = {}, .state = state, .reason = {}}).is_over()) << state;
}

TEST(SlurmJobs, AJobThatSlurmEndedIsKilled) {
  const auto exit_code = [](const std::string& state, int status) {
    return SlurmJob{.id = 1, .trial = {}, .state = state, .reason = {}, .status = status}.exit_code();
  };
  EXPECT_EQ(exit_code("COMPLETED", 0), 0);
  EXPECT_EQ(exit_code("NODE_FAIL", 0), 137);
  EXPECT_EQ(exit_code("CANCELLED", 0), 137) << "it did not begin";
  EXPECT_EQ(exit_code("OUT_OF_MEMORY", 125), 137);
  EXPECT_EQ(exit_code("FAILED", 9), 137) << "SIGKILL";
  EXPECT_EQ(exit_code("CANCELLED", 75 << 8), 75) << "it saved";
}

TEST(SlurmJobs, TheLargestNodeIsOneOfThePartition) {
  const std::string nodes = "6000 all*\n512000 big\n8000 all*\n";
  EXPECT_EQ(largest_node_bytes(nodes, ""), int64_t{8000} << 20);
  EXPECT_EQ(largest_node_bytes(nodes, "big"), int64_t{512000} << 20);
  EXPECT_EQ(largest_node_bytes(nodes, "gone"), 0);
}

TEST(SlurmJobs, ThePartitionIsReadAsSbatchReadsIt) {
  unsetenv("SBATCH_PARTITION");
  EXPECT_EQ(partition_of({}), "");
  EXPECT_EQ(partition_of({"--time=5", "--partition=gpu"}), "gpu");
  EXPECT_EQ(partition_of({"--partition", "gpu", "-t", "5"}), "gpu");
  EXPECT_EQ(partition_of({"-pgpu"}), "gpu");
  EXPECT_EQ(partition_of({"-p", "gpu", "--parsable"}), "gpu");
  setenv("SBATCH_PARTITION", "big", 1);
  EXPECT_EQ(partition_of({"--time=5"}), "big");
  EXPECT_EQ(partition_of({"-pgpu"}), "gpu");
  unsetenv("SBATCH_PARTITION");
}

}  // namespace
}  // namespace headroom
