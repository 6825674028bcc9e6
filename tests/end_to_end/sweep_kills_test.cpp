// A sweep whose processes are killed at random, again and again, comes to the results of one that is left alone.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "sweep_outcome.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<pid_t> family_of(pid_t root) {
  std::vector<pid_t> family = {root};
  for (size_t i = 0; i < family.size(); ++i) {
    const std::string id = std::to_string(family[i]);
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    for (pid_t child = 0; children >> child;) family.push_back(child);
  }
  return family;
}

class SweepKills : public TrialRun {
 protected:
  std::vector<std::string> words(const std::string& out) const {
    return {"sweep", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--out", out, "--no-plan", "--jobs", "2"};
  }
  // Runs a sweep to its end, killing up to `most` of its processes on the way; returns how many.
  int sweep_with_kills(const std::string& out, int most, std::mt19937& draw) const {
    int kills = 0;
    auto program = std::make_unique<Program>(words(out), here());
    const auto has_plan = [runs = folder_ / out / "trial"] {
      return fs::exists(runs) && std::ranges::any_of(fs::directory_iterator(runs), [](const auto& run) {
               return fs::exists(run.path() / "sweep.json");
             });
    };
    EXPECT_TRUE(eventually([&] { return has_plan() || program->ended(); }));
    while (kills < most) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50 + draw() % 700));
      if (program->ended()) {
        if (fs::exists(run_folder(out) / "results.json")) break;  // it was faster
        program =
            std::make_unique<Program>(std::vector<std::string>{"sweep", "--resume", run_folder(out).string()}, here());
        continue;
      }
      const auto family = family_of(program->id());
      if (kill(family[draw() % family.size()], SIGKILL) == 0) ++kills;
    }
    program->wait();
    const Finished last = headroom({"sweep", "--resume", run_folder(out).string()});
    EXPECT_EQ(last.exit_code, 0) << last.err;
    return kills;
  }
  Json outcome(const std::string& out) const { return sweep_outcome(run_folder(out)); }

  // Sweeps again and again, until so many kills have been survived.
  void expect_nothing_changes(const std::string& sweep) const {
    write_text(folder_ / "trial.toml",
               read_text(folder_ / "trial.toml") + "\n[checkpoint]\nevery_steps = 5\n\n[sweep]\n" + sweep);
    const Finished undisturbed = headroom(words("undisturbed"));
    ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
    std::mt19937 draw(HEADROOM_SWEEP_KILLS);
    int kills = 0;
    for (int round = 0; kills < HEADROOM_SWEEP_KILLS; ++round) {
      const std::string out = "killed" + std::to_string(round);
      kills += sweep_with_kills(out, HEADROOM_SWEEP_KILLS - kills, draw);
      EXPECT_EQ(outcome(out), outcome("undisturbed")) << "round " << round << ", " << kills << " kills";
      ASSERT_LT(round, 50) << "sweeps end before anything can be killed";
    }
    std::printf("%d kills\n", kills);
  }
};

TEST_F(SweepKills, ComesToTheSameResults) {
  expect_nothing_changes("\"experiment.seed\" = [1, 2, 3]\n\"train.batch_size\" = [2, 4]\n");
}

TEST_F(SweepKills, ComesToTheSamePromotions) {
  expect_nothing_changes(
      "strategy = \"asha\"\nreduction = 2\n\"experiment.seed\" = [1, 2, 3]\n"
      "\"train.optimizer.lr\" = [0.5, 0.01, 0.0001]\n");
}

}  // namespace
}  // namespace headroom
