#include "sweep/results.hpp"

#include <gtest/gtest.h>

#include "../config/files.hpp"

namespace headroom {
namespace {

class Results : public testing::Test {
 protected:
  void SetUp() override {
    plan_.name = "x", plan_.metric = "val/loss";
    for (const char* id : {"001", "002", "003"})
      plan_.trials.push_back({.id = id, .settings = {{"train.batch_size", id}}, .choices = {}});
  }

  TrialResult finished(size_t i, const std::string& identity, double loss, const std::string& precision = "fp64") {
    const std::string id = plan_.trials[i].id;
    sweep_.write("trials/" + id + "/x/run/experiment.toml", "");
    const nlohmann::json summary = {{"state", "finished"},
                                    {"identity", identity},
                                    {"precision", precision},
                                    {"best", {{"value", loss}}},
                                    {"metrics", {{"val/loss", loss}, {"val/mae", 1.0}}}};
    sweep_.write("trials/" + id + "/x/run/summary.json", summary.dump());
    return {.trial = &plan_.trials[i],
            .state = TrialState::finished,
            .record = {},
            .run = TrialFolder(sweep_.path(), id).run()};
  }

  TemporaryFolder sweep_;
  SweepPlan plan_;
};

TEST_F(Results, EqualIdentitiesAreCompared) {
  const std::vector<TrialResult> equal = {finished(0, "a", 1.0), finished(1, "a", 1.0 + 1e-12), finished(2, "b", 3.0)};
  const auto groups = compare_identities(sweep_.path(), equal);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].trials, (std::vector<std::string>{"001", "002"}));
  EXPECT_TRUE(groups[0].agreement.agrees());
  EXPECT_NEAR(groups[0].agreement.largest_difference, 1e-12, 1e-15);
}

TEST_F(Results, MoreThanRoundingIsFlagged) {
  const std::vector<TrialResult> differ = {finished(0, "a", 1.0), finished(1, "a", 1.0 + 1e-6)};
  const auto groups = compare_identities(sweep_.path(), differ);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_FALSE(groups[0].agreement.agrees());
  EXPECT_EQ(groups[0].agreement.metric, "val/loss");
  EXPECT_NE(
      results_text(plan_, differ, groups).find("val/loss differs by at most 1e-06, more than is usual for rounding"),
      std::string::npos)
      << results_text(plan_, differ, groups);
  EXPECT_EQ(results_json(plan_, differ, groups).at("identities").at(0).at("agrees"), false);
  const std::vector<TrialResult> single = {finished(0, "a", 1.0, "fp32"), finished(1, "a", 1.0 + 1e-6, "fp32")};
  EXPECT_TRUE(compare_identities(sweep_.path(), single).at(0).agreement.agrees()) << "fp32 rounds more";
}

TEST_F(Results, TheBestIsMarked) {
  std::vector<TrialResult> results = {finished(0, "a", 2.0), finished(1, "b", 1.0), finished(2, "c", 3.0)};
  EXPECT_EQ(best_of(results)->trial->id, "002");
  for (TrialResult& result : results) result.run.lower_wins = false;
  EXPECT_EQ(best_of(results)->trial->id, "003");
  EXPECT_NE(results_text(plan_, results, {}).find("* 003"), std::string::npos);
  EXPECT_EQ(results_json(plan_, results, {}).at("best"), "003");
  results[2].state = TrialState::failed;
  EXPECT_EQ(best_of(results)->trial->id, "001");
}

TEST_F(Results, EveryTrialHasARowAndItsReason) {
  std::vector<TrialResult> results = {finished(0, "a", 2.0),
                                      {.trial = &plan_.trials[1], .record = {}, .run = {}},
                                      {.trial = &plan_.trials[2], .record = {}, .run = {}}};
  results[1].state = TrialState::infeasible;
  results[1].record.why = "too \"large\", by far";
  results[1].record.predicted_peak_bytes = 1 << 20;
  results[2].state = TrialState::pruned;
  const std::string csv = results_csv(plan_, results), text = results_text(plan_, results, {});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(csv.find("002,infeasible,002,,,1048576,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",\"too \"\"large\"\", by far\"\n"), std::string::npos) << csv;
  EXPECT_NE(text.find("3 trials, 1 finished, 1 infeasible, 1 pruned\n"), std::string::npos) << text;
  EXPECT_NE(text.find("002 infeasible: too \"large\", by far\n"), std::string::npos) << text;
  EXPECT_NE(text.find("(1.0 MiB)"), std::string::npos) << text;
}

}  // namespace
}  // namespace headroom
