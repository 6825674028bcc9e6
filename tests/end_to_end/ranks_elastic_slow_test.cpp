// Kills at any time of runs of three and four ranks.
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

// Also while they start, while they are taken in, and of all that hold the state: then the run is resumed.
TEST_F(KillCampaign, ThoseThatAreStartedAgainAreTakenInAndKilledAgain) {
  const std::vector<std::string> set = {"data.options.samples=2000", "train.elastic_restarts=4"};
  const Undisturbed expected = undisturbed(set);
  std::mt19937 random(6);
  int kills = 0, returns = 0, resumes = 0;
  for (int run = 0; kills < 60 && run < 100; ++run) {
    const std::string out = "run-" + std::to_string(run);
    const fs::path slow = folder_ / "slow";
    write_text(slow, "");
    Program program(words_of(3, elastic(set), out), here({"HEADROOM_TEST_SLOW=" + slow.string()}));
    ASSERT_TRUE(eventually([&] { return has_saved(out) || program.ended(); }));
    std::string killed;
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 2500));
      const int victim = static_cast<int>(random() % 3);
      const pid_t trainer = program.ended() ? -1 : trainer_of(program, victim);
      if (trainer <= 0 || kill(trainer, SIGKILL) != 0) continue;
      ++kills;
      killed += " " + std::to_string(victim);
    }
    fs::remove(slow);
    const Finished end = program.wait();
    SCOPED_TRACE(out + ", killed:" + killed + "\n" + end.err);
    resumes += end.exit_code == 75 ? 1 : 0;
    EXPECT_EQ(end.exit_code == 75 ? resumed(run_folder(out), 2).exit_code : end.exit_code, 0);
    expect_as(expected, run_folder(out));
    for (size_t at = 0; (at = end.err.find(" came back; ", at)) != std::string::npos; ++at) ++returns;
    fs::remove_all(folder_ / out);
    if (HasFailure()) return;
  }
  EXPECT_GE(kills, 60);
  EXPECT_GT(returns, kills / 4);
  EXPECT_LT(resumes, kills / 4);
}

}  // namespace
}  // namespace headroom
