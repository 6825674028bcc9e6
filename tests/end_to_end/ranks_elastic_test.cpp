// Ranks that are killed, and the run that goes on without them. ranks_elastic_slow_test.cpp kills at any time.
#include <regex>

#include "elastic_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class RunThatLosesRanks : public ElasticRun {
 protected:
  const Undisturbed& undisturbed() const {
    static const Undisturbed made = ElasticRun::undisturbed({});
    return made;
  }
  // The ranks that were lost, as the summary has them, and from which step the others went on.
  static std::vector<std::pair<int, int>> lost(const fs::path& run) { return changes(run, "lost"); }
  static std::vector<std::pair<int, int>> changes(const fs::path& run, const char* kind) {
    std::vector<std::pair<int, int>> all;
    const nlohmann::json summary = read_json(run / "summary.json");
    for (const nlohmann::json& one : summary.at("ranks").at(kind))
      all.emplace_back(one.at("rank").get<int>(), one.at("step").get<int>());
    return all;
  }
};

TEST_F(RunThatLosesRanks, GoesOnFromTheWindowInWhichOneWasKilled) {
  const Finished end = killed_at("train:14", {2}, 3, {}, "killed");
  ASSERT_EQ(end.exit_code, 0) << end.err;
  expect_as(undisturbed(), run_folder("killed"));
  EXPECT_EQ(lost(run_folder("killed")), (std::vector<std::pair<int, int>>{{2, 14}}));
  const std::regex line("rank 2 \\(pid [0-9]+\\) was killed by signal 9; 2 ranks go on from step 14\n");
  EXPECT_TRUE(std::regex_search(end.err, line)) << end.err;
}

TEST_F(RunThatLosesRanks, TheFirstOfThoseLeftWritesInPlaceOfRankZero) {
  const Finished end = killed_at("train:14", {0}, 3, {}, "killed");
  ASSERT_EQ(end.exit_code, 0) << end.err;
  expect_as(undisturbed(), run_folder("killed"));
  // Its words are the run's.
  EXPECT_NE(end.out.find("run folder: "), std::string::npos) << end.out << end.err;
  EXPECT_NE(end.err.find("Epoch 2/2"), std::string::npos) << end.err;
  EXPECT_TRUE(fs::exists(run_folder("killed") / "report.html"));
}

TEST_F(RunThatLosesRanks, TwoAtATimeLeaveOneThatGoesOnAlone) {
  const Finished end = killed_at("train:14", {0, 1}, 3, {}, "killed");
  ASSERT_EQ(end.exit_code, 0) << end.err;
  expect_as(undisturbed(), run_folder("killed"));
  EXPECT_EQ(lost(run_folder("killed")), (std::vector<std::pair<int, int>>{{0, 14}, {1, 14}}));
}

TEST_F(RunThatLosesRanks, TakesAnEvaluationAgain) {
  for (const int victim : {0, 1}) {
    const std::string out = "killed-" + std::to_string(victim);
    const Finished end = killed_at("eval:12", {victim}, 3, {}, out);
    ASSERT_EQ(end.exit_code, 0) << end.err;
    expect_as(undisturbed(), run_folder(out));
    EXPECT_EQ(lost(run_folder(out)), (std::vector<std::pair<int, int>>{{victim, 12}}));
  }
}

// One after the other is killed, and comes back.
class RunThatTakesRanksIn : public RunThatLosesRanks {
 protected:
  static const std::vector<std::string>& set() {
    static const std::vector<std::string> long_enough = {"data.options.samples=6000", "train.elastic_restarts=3",
                                                         "checkpoint.every_steps=200"};
    return long_enough;
  }
  bool has_stepped(const std::string& out) const {
    std::error_code none_yet;
    for (const auto& run : fs::directory_iterator(folder_ / out / "trial", none_yet)) {
      if (read_text(run.path() / "metrics.csv").find("loss_step") != std::string::npos) return true;
    }
    return false;
  }
  static bool came_back(Program& program, const fs::path& run, size_t times) {
    if (program.ended()) return true;
    size_t found = 0;
    for (const nlohmann::json& line : read_json_lines(run / "events.jsonl"))
      found += line.at("kind") == "rank_came_back";
    return found == times;
  }
};

TEST_F(RunThatTakesRanksIn, EndsAsIfNothingHadBeen) {
  const Undisturbed expected = ElasticRun::undisturbed(set());
  // Else the run might be over before they have come back.
  const fs::path slow = folder_ / "slow";
  write_text(slow, "");
  Program program(words_of(3, elastic(set()), "killed"), here({"HEADROOM_TEST_SLOW=" + slow.string()}));
  ASSERT_TRUE(eventually([&] { return has_stepped("killed") || program.ended(); }));
  const fs::path run = run_folder("killed");
  // The second is the one that has just come back, the third writes the run's files.
  size_t times = 0;
  for (const int victim : {1, 1, 0}) {
    const pid_t trainer = trainer_of(program, victim);
    ASSERT_GT(trainer, 0);
    kill(trainer, SIGKILL);
    ++times;
    ASSERT_TRUE(eventually([&] { return came_back(program, run, times); }));
  }
  fs::remove(slow);
  const Finished end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  expect_as(expected, run);
  std::vector<int> back;
  for (const auto& [rank, step] : changes(run, "came_back")) back.push_back(rank);
  EXPECT_EQ(back, (std::vector<int>{1, 1, 0})) << end.err;
  EXPECT_EQ(lost(run).size(), 3u);
  EXPECT_EQ(read_json(run / "summary.json").at("ranks").at("left"), 3);
  EXPECT_TRUE(std::regex_search(end.err, std::regex("rank 0 \\(pid [0-9]+\\) came back; 3 ranks go on from step")))
      << end.err;
  EXPECT_FALSE(fs::exists(run / "ranks" / "handed_over"));
}

TEST_F(RunThatLosesRanks, OfWhichTooFewAreLeftEndsAndIsResumed) {
  const Finished end = killed_at("train:14", {1}, 2, {"train.elastic_min=2"}, "killed");
  EXPECT_EQ(end.exit_code, 75) << end.err;
  EXPECT_EQ(read_json(run_folder("killed") / "postmortem.json").at("ended").at("rank"), 1);
  const Finished on = resumed(run_folder("killed"), 3);
  EXPECT_EQ(on.exit_code, 0) << on.err;
  expect_weights(run_folder("killed"), undisturbed().run.weights);
}

}  // namespace
}  // namespace headroom
