// [rescue]: a run that does not fit climbs down by itself, and says what that did to it.
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Rescue : public TrialRun {
 protected:
  void add_ladder(const std::string& rungs) const {
    write_text(folder_ / "trial.toml", read_text(folder_ / "trial.toml") + "\n[rescue]\nrungs = [\n" + rungs + "\n]\n");
  }
  // Of the last attempt.
  Json summary() const {
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(folder_ / "runs/trial")) {
      const fs::path file = entry.path() / "summary.json";
      if (newest.empty() || fs::last_write_time(file) > fs::last_write_time(newest)) newest = file;
    }
    return read_json(newest);
  }
  size_t run_folders() const {
    const auto entries = fs::directory_iterator(folder_ / "runs/trial");
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
};

#if !defined(__SANITIZE_ADDRESS__)  // what the sanitizer holds is above any small limit
// Four million hidden units: their parameters, gradients, moments and averages are 400 MB.
const std::vector<std::string> kTooLarge = {"model.options.hidden=4000000", "train.epochs=1", "train.max_steps=6"};

std::vector<std::string> with(std::vector<std::string> set, const std::string& more) {
  set.push_back(more);
  return set;
}

TEST_F(Rescue, TakesRungsUntilOneFits) {
  const std::string limit = "memory.limit=300 MiB";
  const Finished without = run(with(kTooLarge, limit), "without");
  ASSERT_EQ(without.exit_code, 5) << without.err;

  add_ladder(R"(  { "data.num_workers" = 0 },
  { "model.options.hidden" = 8 },
  { "train.batch_size" = 1 },)");
  const Finished finished = run(with(kTooLarge, limit));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const size_t first = finished.err.find(
      "[rescue] it does not fit: rung 1 of 3, data.num_workers = 0; this keeps the mathematics; it starts again\n");
  const size_t second = finished.err.find(
      "[rescue] it does not fit: rung 2 of 3, model.options.hidden = 8; this changes the mathematics; it starts "
      "again\n");
  EXPECT_NE(first, std::string::npos) << finished.err;
  EXPECT_NE(second, std::string::npos) << finished.err;
  EXPECT_LT(first, second);
  EXPECT_EQ(finished.err.find("rung 3 of 3,"), std::string::npos) << "more than it needs";
  EXPECT_NE(finished.out.find("rescue: rung 2 of 3 is taken, model.options.hidden = 8: this changes the mathematics"),
            std::string::npos)
      << finished.out;
  EXPECT_EQ(summary().at("rescue"), Json({{"rungs", 3},
                                          {"keeps_mathematics", false},
                                          {"taken",
                                           {{{"set", "data.num_workers = 0"}, {"keeps_mathematics", true}},
                                            {{"set", "model.options.hidden = 8"}, {"keeps_mathematics", false}}}}}));
  EXPECT_EQ(summary().at("state"), "finished");
  EXPECT_EQ(summary().at("steps"), 6);
}
#endif

// No memory for more than two samples at once, from step 20 on: after the checkpoint of step 15.
std::vector<std::string> short_of_memory() { return {"HEADROOM_TEST_FAULT=short:20:2"}; }

TEST_F(Rescue, GoesOnFromTheCheckpointWhereTheMathematicsStay) {
  const std::vector<std::string> fixed = {"train.micro_batch=4", "model.options.remember=false"};
  ASSERT_EQ(run(fixed, "undisturbed").exit_code, 0);
  add_ladder(R"(  { "train.micro_batch" = 2, "train.batch_size" = 2, "train.gradient_accumulation_steps" = 4 },
  { "model.options.hidden" = 2 },)");
  const Finished finished = headroom_program(run_words(fixed), here(short_of_memory()));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("; this keeps the mathematics; it continues from the last checkpoint\n"),
            std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("resumed at step 15"), std::string::npos) << finished.err;
  const Json ours = summary(), theirs = read_json(run_folder("undisturbed") / "summary.json");
  EXPECT_EQ(run_folders(), 1u);
  EXPECT_EQ(ours.at("identity"), theirs.at("identity"));
  EXPECT_EQ(ours.at("rescue").at("keeps_mathematics"), true);
  EXPECT_EQ(ours.at("steps"), 45);
  EXPECT_NEAR(ours.at("metrics").at("val/loss"), theirs.at("metrics").at("val/loss"),
              1e-4 * theirs.at("metrics").at("val/loss").get<double>());
}

TEST_F(Rescue, BeginsAnewWhereTheMathematicsChange) {
  add_ladder(R"(  { "train.micro_batch" = 2, "train.batch_size" = 2 },)");
  const Finished finished = headroom_program(run_words({"train.micro_batch=4"}), here(short_of_memory()));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("; this changes the mathematics; it starts again in another folder\n"), std::string::npos)
      << finished.err;
  EXPECT_EQ(run_folders(), 2u) << "the checkpoint of the old mathematics is left alone";
  EXPECT_EQ(summary().at("rescue").at("keeps_mathematics"), false);
  EXPECT_EQ(summary().at("window_samples"), 4);
  EXPECT_EQ(summary().at("steps"), 90);
}

// A crash may come between a checkpoint and its link.
TEST_F(Rescue, LeavesACheckpointWithoutALinkAlone) {
  add_ladder(R"(  { "train.micro_batch" = 2, "train.batch_size" = 2 },)");
  std::vector<std::string> words = run_words({"train.micro_batch=4"});
  words.insert(words.end(), {"--until-epoch", "1"});
  ASSERT_EQ(headroom(words).exit_code, 75);
  ASSERT_TRUE(fs::remove(run_folder() / "checkpoints" / "last"));
  const Finished finished = headroom_program(
      {"run", "--resume", run_folder().string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR}, here(short_of_memory()));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("; this changes the mathematics; it starts again in another folder\n"), std::string::npos)
      << finished.err;
  EXPECT_EQ(run_folders(), 2u);
}

// It is refused before it opens its folder, so only the word says where that is; shells end it with a slash.
TEST_F(Rescue, BeginsAnewBesideAFolderThatEndsWithASlash) {
  add_ladder(R"(  { "train.batch_size" = 2, "memory.limit" = "off" },)");
  std::vector<std::string> words = run_words();
  words.insert(words.end(), {"--until-epoch", "1"});
  ASSERT_EQ(headroom(words).exit_code, 75);
  const Finished resumed = headroom({"run", "--resume", run_folder().string() + "/", "--no-plan", "--set",
                                     "memory.limit=1 MiB", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("; it starts again in another folder\n"), std::string::npos) << resumed.err;
  EXPECT_EQ(run_folders(), 2u);
  EXPECT_FALSE(fs::exists(folder_ / "runs/trial/trial"));
}

TEST_F(Rescue, EndsWithExit5WhenNoRungIsLeft) {
  add_ladder(R"(  { "train.micro_batch" = 3 },)");
  const Finished finished = headroom_program(run_words({"train.micro_batch=4"}), here(short_of_memory()));
  EXPECT_EQ(finished.exit_code, 5);
  EXPECT_NE(finished.err.find("[rescue] it does not fit, and no rung is left: 1 of 1 are taken"), std::string::npos)
      << finished.err;
  EXPECT_EQ(summary().at("state"), "failed");
  EXPECT_EQ(summary().at("rescue").at("taken").size(), 1u);
}

TEST_F(Rescue, IsOffUnlessWritten) {
  const Finished finished = headroom_program(run_words({"train.micro_batch=4"}), here(short_of_memory()));
  EXPECT_EQ(finished.exit_code, 5);
  EXPECT_EQ(finished.err.find("[rescue]"), std::string::npos) << finished.err;
  EXPECT_FALSE(summary().contains("rescue"));
}

// Before anything of it is needed.
TEST_F(Rescue, RefusesWhatNobodyKnows) {
  add_ladder(R"(  { "data.num_workers" = 0 },
  { "model.options.hiden" = 8 },)");
  const Finished finished = run();
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(
      finished.err.find("trial.toml:39:5: unknown option model.options.hiden of model 'trial_model'; did you mean"),
      std::string::npos)
      << finished.err;
  const Finished valid = headroom({"validate", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(valid.exit_code, 2);
  EXPECT_NE(valid.err.find("model.options.hiden"), std::string::npos) << valid.err;
}

}  // namespace
}  // namespace headroom
