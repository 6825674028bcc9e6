// 50 kills at any time of runs of three and four ranks.
#include <random>

#include "elastic_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class KillCampaign : public ElasticRun {};

// Whoever hangs, Program::wait() ends.
TEST_F(KillCampaign, WeightsAndLogsAreThoseOfTheUndisturbedRun) {
  const std::vector<std::string> set = {"train.epochs=20"};
  const Undisturbed expected = undisturbed(set);
  std::mt19937 random(5);
  int kills = 0;
  for (int run = 0; kills < 50 && run < 100; ++run) {
    const int processes = 3 + run % 2;
    const std::string out = "run-" + std::to_string(run);
    Program program(words_of(processes, elastic(set), out), here());
    ASSERT_TRUE(eventually([&] { return has_saved(out) || program.ended(); }));
    std::vector<int> ranks(static_cast<size_t>(processes));
    for (int rank = 0; rank < processes; ++rank) ranks[static_cast<size_t>(rank)] = rank;
    std::shuffle(ranks.begin(), ranks.end(), random);
    std::string killed;
    for (int victim = 0; victim < processes - 1; ++victim) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % (victim == 0 ? 500000 : 300000)));
      const pid_t trainer = program.ended() ? -1 : trainer_of(program, ranks[static_cast<size_t>(victim)]);
      if (trainer <= 0 || kill(trainer, SIGKILL) != 0) break;
      ++kills;
      killed += " " + std::to_string(ranks[static_cast<size_t>(victim)]);
    }
    const Finished end = program.wait();
    SCOPED_TRACE(out + ", killed:" + killed + "\n" + end.err);
    // Who is killed after the run's end, while it writes its result, leaves that to a resume.
    EXPECT_EQ(end.exit_code == 75 ? resumed(run_folder(out), 2).exit_code : end.exit_code, 0);
    expect_as(expected, run_folder(out));
    fs::remove_all(folder_ / out);
    if (HasFailure()) return;
  }
  EXPECT_GE(kills, 50);
}

}  // namespace
}  // namespace headroom
