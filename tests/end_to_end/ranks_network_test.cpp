// Machines of a run, each a network namespace. Links between them are cut, or slow and lossy.
#include <cstdlib>
#include <memory>
#include <unistd.h>

#include "ranks_run.hpp"
#include "slow_link.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class OnMachines : public RunInRanks {
 protected:
  static constexpr int machines = 3;

  // The first has the bridge that all are connected to.
  void SetUp() override {
    RunInRanks::SetUp();
    const std::string hub = name(0);
    std::vector<std::string> all = {"netns add " + hub, "-n " + hub + " link set lo up",
                                    "-n " + hub + " link add hr0 type bridge", address_of(0),
                                    "-n " + hub + " link set hr0 up"};
    for (int rank = 1; rank < machines; ++rank) {
      const std::string other = name(rank), port = "hr" + std::to_string(rank);
      all.insert(all.end(), {"netns add " + other, "-n " + other + " link set lo up",
                             "-n " + hub + " link add " + port + " type veth peer name hr0 netns " + other,
                             "-n " + hub + " link set " + port + " master hr0 up", address_of(rank),
                             "-n " + other + " link set hr0 up"});
    }
    for (const std::string& words : all) {
      if (!ip(words)) GTEST_SKIP() << "no network namespaces with links between them can be made here: ip " << words;
    }
  }
  void TearDown() override {
    programs_.clear();
    for (int rank = 0; rank < machines; ++rank) ip("netns delete " + name(rank));
    RunInRanks::TearDown();
  }

  static std::string name(int rank) { return "headroom-" + std::to_string(getpid()) + "-" + std::to_string(rank); }
  static std::string address(int rank) { return "10.213.78." + std::to_string(rank + 1); }
  static std::string address_of(int rank) {
    return "-n " + name(rank) + " address add " + address(rank) + "/24 dev hr0";
  }
  static bool ip(const std::string& words) { return std::system(("ip " + words + " 2>/dev/null").c_str()) == 0; }

  void start(int rank, int ranks, const std::vector<std::string>& environment, const std::string& meets_at = address(0),
             int per_machine = 1) {
    const InNetwork in(name(first_machine_ + rank / per_machine));
    ASSERT_TRUE(in);
    std::vector<std::string> variables = environment;
    variables.insert(variables.end(), {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
                                       "LOCAL_RANK=" + std::to_string(rank % per_machine),
                                       "LOCAL_WORLD_SIZE=" + std::to_string(per_machine), "MASTER_ADDR=" + meets_at,
                                       "MASTER_PORT=29500"});
    programs_.push_back(std::make_unique<Program>(words_of(1, {}, "runs"), here(variables)));
  }
  void expect_the_rest_by_one_process() {
    const Finished on = resumed(run_folder(), 1);
    EXPECT_EQ(on.exit_code, 0) << on.err;
    expect_weights(run_folder(), alone().weights);
  }
  std::vector<std::unique_ptr<Program>> programs_;
  int first_machine_ = 0;  // that of rank 0
};

// They compute when it is cut; then they wait for each other, or go on computing.
TEST_F(OnMachines, AllEndAndNameTheOtherWhereTheLinkIsCut) {
  for (const bool waits : {true, false}) {
    fs::remove_all(folder_ / "runs");
    const fs::path waiting = folder_ / "waiting";
    for (const int rank : {0, 1}) start(rank, 2, {"HEADROOM_TEST_PAUSE=train:6:" + waiting.string()});
    ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
    ASSERT_TRUE(ip("-n " + name(0) + " link set hr0 down"));
    if (waits) fs::remove(waiting);
    for (const int rank : {0, 1}) {
      const Finished end = programs_[static_cast<size_t>(rank)]->wait();
      EXPECT_EQ(end.exit_code, 75) << end.err;
      EXPECT_NE(end.err.find("rank " + std::to_string(1 - rank) + " of 2 on host "), std::string::npos) << end.err;
    }
    fs::remove(waiting);
    programs_.clear();
    expect_the_rest_by_one_process();
    ASSERT_TRUE(ip("-n " + name(0) + " link set hr0 up"));
  }
}

TEST_F(OnMachines, AllEndWhereTwoReachTheFirstAndNotEachOther) {
  const fs::path waiting = folder_ / "waiting";
  for (const int rank : {0, 1, 2}) start(rank, 3, {"HEADROOM_TEST_PAUSE=train:6:" + waiting.string()});
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  ASSERT_TRUE(ip("-n " + name(1) + " route add blackhole " + address(2)));
  ASSERT_TRUE(ip("-n " + name(2) + " route add blackhole " + address(1)));
  fs::remove(waiting);
  for (const auto& program : programs_) {
    const Finished end = program->wait();
    EXPECT_EQ(end.exit_code, 75) << end.err;
  }
  expect_the_rest_by_one_process();
}

// With one process on each machine, and with two.
TEST_F(OnMachines, HaveTheWeightsAndMetricsOfOneOverALinkThatIsSlowAndLosesPackets) {
  for (const int per_machine : {1, 2}) {
    fs::remove_all(folder_ / "runs");
    const SlowLink link(name(1), name(2), "slow0");
    if (!link.is_there()) GTEST_SKIP() << "no TUN devices can be made here";
    const std::string addresses[] = {"10.213.79.1", "10.213.79.2"};
    for (const int end : {0, 1}) {
      const std::string at = "-n " + name(end + 1);
      ASSERT_TRUE(ip(at + " address add " + addresses[end] + " peer " + addresses[1 - end] + " dev slow0"));
      ASSERT_TRUE(ip(at + " link set slow0 up"));
    }
    first_machine_ = 1;
    for (int rank = 0; rank < 2 * per_machine; ++rank)
      start(rank, 2 * per_machine, {"GLOO_SOCKET_IFNAME=slow0"}, addresses[0], per_machine);
    for (const auto& program : programs_) {
      const Finished end = program->wait();
      EXPECT_EQ(end.exit_code, 0) << end.err;
    }
    programs_.clear();
    EXPECT_GT(link.lost(), 0) << "of " << link.carried();
    expect_weights(run_folder(), alone().weights);
    expect_metrics(run_folder(), alone().summary);
  }
}

}  // namespace
}  // namespace headroom
