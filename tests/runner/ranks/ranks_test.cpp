#include "ranks/ranks.hpp"

#include <gtest/gtest.h>
#include <map>

#include "error.hpp"

namespace headroom {
namespace {

using Variables = std::map<std::string, std::string>;

Ranks ranks_of(const Variables& variables) {
  return ranks_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Ranks, WithoutALauncherTheProcessIsAlone) { EXPECT_TRUE(ranks_of({}).alone()); }

TEST(Ranks, OfOneAreNone) {
  EXPECT_TRUE(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).alone());
  EXPECT_TRUE(ranks_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).alone());
}

TEST(Ranks, OfTorchrun) {
  const Ranks ranks = ranks_of({{"RANK", "5"},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "10.0.0.7"},
                                {"MASTER_PORT", "29501"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(ranks.rank, 5);
  EXPECT_EQ(ranks.count, 8);
  EXPECT_EQ(ranks.local_rank, 1);
  EXPECT_EQ(ranks.local_count, 4);
  EXPECT_EQ(ranks.host, "10.0.0.7");
  EXPECT_EQ(ranks.port, 29501);
  EXPECT_TRUE(ranks.hosted_by_launcher);
  EXPECT_EQ(ranks.attempt, "2");
  EXPECT_EQ(ranks.name(), "rank 5 of 8");
}

// It has SLURM_NTASKS and SLURM_PROCID as a step has, and would wait for three others for ever.
TEST(Ranks, ABatchScriptOfSlurmIsAlone) {
  EXPECT_TRUE(ranks_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "12"}}).alone());
}

TEST(Ranks, OfSrunMeetAtTheFirstHostAndAPortOfTheJob) {
  Variables step = {{"SLURM_PROCID", "3"},
                    {"SLURM_STEP_NUM_TASKS", "8"},
                    {"SLURM_LOCALID", "3"},
                    {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                    {"SLURM_JOB_ID", "12345"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_STEP_NODELIST", "node[07-08]"}};
  const Ranks ranks = ranks_of(step);
  EXPECT_EQ(ranks.rank, 3);
  EXPECT_EQ(ranks.local_count, 4);
  EXPECT_EQ(ranks.host, "node07");
  step["SLURM_STEP_TASKS_PER_NODE"] = "2,3(x2)";
  EXPECT_EQ(ranks_of(step).local_count, 3);
  step["SLURM_STEP_ID"] = "1";
  EXPECT_NE(ranks_of(step).port, ranks.port);
}

TEST(Ranks, OfMpirunOnOneMachineMeetOnLoopback) {
  const Ranks ranks = ranks_of({{"OMPI_COMM_WORLD_RANK", "1"},
                                {"OMPI_COMM_WORLD_SIZE", "2"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(ranks.rank, 1);
  EXPECT_EQ(ranks.host, "127.0.0.1");
}

TEST(Ranks, OfMpirunOnSeveralMachinesNeedAnAddress) {
  const Variables several = {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  try {
    ranks_of(several);
    FAIL() << "nobody knows where rank 0 is";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::bad_input);
    EXPECT_NE(std::string(problem.what()).find("MASTER_ADDR"), std::string::npos) << problem.what();
  }
}

TEST(Ranks, NumbersThatCannotBeAreToldByTheirVariable) {
  for (const Variables& wrong :
       {Variables{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, Variables{{"RANK", "x"}, {"WORLD_SIZE", "4"}},
        Variables{{"RANK", "-1"}, {"WORLD_SIZE", "4"}}}) {
    try {
      ranks_of(wrong);
      FAIL() << wrong.at("RANK");
    } catch (const Error& problem) {
      EXPECT_EQ(problem.exit_code(), Exit::bad_input);
      EXPECT_NE(std::string(problem.what()).find("RANK is"), std::string::npos) << problem.what();
    }
  }
}

TEST(Ranks, HeadroomsOwnMeetInAFile) {
  const Ranks ranks =
      ranks_of({{rank_variable, "1"}, {ranks_variable, "3"}, {ranks_store_variable, "/tmp/store"}, {"RANK", "7"}});
  EXPECT_EQ(ranks.rank, 1);
  EXPECT_EQ(ranks.count, 3);
  EXPECT_EQ(ranks.local_count, 3);
  EXPECT_EQ(ranks.store_file, "/tmp/store");
}

TEST(FirstHost, OfListsAsSlurmWritesThem) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[03-05,9],other"), "node03");
  EXPECT_EQ(first_host("rack[2,4]-gpu,x"), "rack2-gpu");
  EXPECT_EQ(first_host("a,node[1-2]"), "a");
}

}  // namespace
}  // namespace headroom
