// Two machines of a run, each a network namespace, and the link between them is cut.
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <unistd.h>

#include "memory/descriptor.hpp"
#include "ranks_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class OnTwoMachines : public RunInRanks {
 protected:
  void SetUp() override {
    RunInRanks::SetUp();
    const std::string first = name(0), second = name(1);
    for (const std::string& words :
         {"netns add " + first, "netns add " + second,
          "-n " + first + " link add hr0 type veth peer name hr1 netns " + second,
          "-n " + first + " address add 10.213.78.1/24 dev hr0", "-n " + second + " address add 10.213.78.2/24 dev hr1",
          "-n " + first + " link set lo up", "-n " + second + " link set lo up", "-n " + first + " link set hr0 up",
          "-n " + second + " link set hr1 up"}) {
      if (!ip(words)) GTEST_SKIP() << "no network namespaces with a link between them can be made here: ip " << words;
    }
  }
  void TearDown() override {
    programs_.clear();
    for (const int rank : {0, 1}) ip("netns delete " + name(rank));
    RunInRanks::TearDown();
  }

  static std::string name(int rank) { return "headroom-" + std::to_string(getpid()) + "-" + std::to_string(rank); }
  static bool ip(const std::string& words) { return std::system(("ip " + words + " 2>/dev/null").c_str()) == 0; }

  // What a thread starts is in the namespace of the thread.
  void start(int rank, const std::vector<std::string>& environment) {
    const Descriptor ours(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    const Descriptor its(open(("/run/netns/" + name(rank)).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(setns(its.get(), CLONE_NEWNET), 0);
    std::vector<std::string> variables = environment;
    variables.insert(variables.end(), {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "LOCAL_RANK=0",
                                       "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=10.213.78.1", "MASTER_PORT=29500"});
    programs_.push_back(std::make_unique<Program>(words_of(1, {}, "runs"), here(variables)));
    ASSERT_EQ(setns(ours.get(), CLONE_NEWNET), 0);
  }
  std::vector<std::unique_ptr<Program>> programs_;
};

// They compute when it is cut; then they wait for each other, or go on computing.
TEST_F(OnTwoMachines, AllEndAndNameTheOtherWhereTheLinkIsCut) {
  for (const bool waits : {true, false}) {
    fs::remove_all(folder_ / "runs");
    const fs::path waiting = folder_ / "waiting";
    for (const int rank : {0, 1}) start(rank, {"HEADROOM_TEST_PAUSE=train:6:" + waiting.string()});
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
    const Finished on = resumed(run_folder(), 1);
    EXPECT_EQ(on.exit_code, 0) << on.err;
    expect_weights(run_folder(), alone().weights);
    ASSERT_TRUE(ip("-n " + name(0) + " link set hr0 up"));
  }
}

}  // namespace
}  // namespace headroom
