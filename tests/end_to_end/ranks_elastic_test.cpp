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
  static std::vector<std::pair<int, int>> lost(const fs::path& run) {
    std::vector<std::pair<int, int>> all;
    const nlohmann::json summary = read_json(run / "summary.json");
    for (const nlohmann::json& one : summary.at("ranks").at("lost"))
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
