// An optimizer that a plugin offers: examples/muon, and faulty_optimizer with one fault at a time.

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr const char* muon = "train.optimizer.name=" HEADROOM_BUILD_DIR "/examples/muon.so";

class OptimizerRun : public TrialRun {
 protected:
  static std::vector<std::string> with_muon(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {muon, "train.optimizer.lr=0.02", "train.optimizer_options.ns_steps=4",
                                      "checkpoint.every_steps=4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The experiment with a table of options at its end, from line 35 on.
  void write_options(const std::string& name, const std::string& options) const {
    std::string text = read_text(folder_ / "trial.toml");
    const std::string adamw = "name = \"adamw\"";
    text.replace(text.find(adamw), adamw.size(), "name = \"" + name + "\"");
    write_text(folder_ / "trial.toml", text + "[train.optimizer_options]\n" + options + "\n");
  }
};

TEST_F(OptimizerRun, KilledAndResumedItEndsBitEqual) {
  ASSERT_EQ(run(with_muon(), "whole").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(run_killed_and_resumed(with_muon(), "killed", "HEADROOM_TEST_PAUSE=train:22:"));
  for (const char* file : {"checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors"})
    EXPECT_TRUE(read_text(run_folder("killed") / file) == read_text(run_folder("whole") / file)) << file;
  EXPECT_EQ(metrics_without_times(run_folder("killed")), metrics_without_times(run_folder("whole")));
  const std::string state = read_text(run_folder("whole") / "checkpoints/last/state.safetensors");
  EXPECT_NE(state.find("optimizer/momentum/hidden.weight"), std::string::npos);
  EXPECT_NE(state.find("optimizer/exp_avg_sq/hidden.bias"), std::string::npos);
}

TEST_F(OptimizerRun, LearnsAndSaysAgainWhatItWasTrainedWith) {
  ASSERT_EQ(run(with_muon({"train.epochs=1"}), "short").exit_code, 0);
  ASSERT_EQ(run(with_muon({"train.epochs=6"}), "long").exit_code, 0);
  const auto loss = [&](const std::string& out) {
    return read_json(run_folder(out) / "summary.json").at("metrics").at("val/loss").get<double>();
  };
  EXPECT_LT(loss("long"), loss("short"));
  const std::string written = read_text(run_folder("short") / "experiment.toml");
  EXPECT_NE(written.find("optimizer_options = {"), std::string::npos) << written;
  EXPECT_NE(written.find("ns_steps = 4"), std::string::npos) << written;
  EXPECT_NE(written.find("adam_lr_scale = 0.015"), std::string::npos) << "defaults too: " << written;
  const std::string again = (run_folder("short") / "experiment.toml").string();
  const Finished repeated =
      headroom({"run", again, "--no-plan", "--out", "again", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(repeated.exit_code, 0) << repeated.err;
  EXPECT_EQ(read_json(run_folder("again") / "summary.json").at("identity"),
            read_json(run_folder("short") / "summary.json").at("identity"));
  // Another option is another training.
  const Finished changed = headroom({"run", "--resume", run_folder("short").string(), "--plugin-dir",
                                     HEADROOM_TEST_PLUGIN_DIR, "--set", "train.optimizer_options.ns_steps=3"});
  EXPECT_EQ(changed.exit_code, 2) << changed.err;
  EXPECT_NE(changed.err.find("train.optimizer_options.ns_steps was 4, is 3"), std::string::npos) << changed.err;
}

TEST_F(OptimizerRun, ItsStateIsOnTheLedger) {
  const std::vector<std::string> wide = {"train.epochs=1", "model.options.hidden=4000", "train.ema.decay=0"};
  ASSERT_EQ(run(with_muon(wide), "muon").exit_code, 0);
  const auto lines = read_json_lines(run_folder("muon") / "memory.jsonl");
  ASSERT_FALSE(lines.empty());
  const auto& last = lines.back();
  // One number for each of the matrices, two for each of the vectors.
  const int64_t parameters = last.at("parameters_bytes"), optimizer = last.at("optimizer_bytes");
  EXPECT_GT(optimizer, parameters);
  EXPECT_LT(optimizer, 2 * parameters);
  EXPECT_EQ(headroom({"plan", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--set", muon}).exit_code, 0);
}

TEST_F(OptimizerRun, WhatDoesNotSuitIsRefusedWithItsLine) {
  const auto refused = [&](const std::string& sentence) {
    const Finished finished = run();
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << finished.err;
    EXPECT_FALSE(fs::exists(folder_ / "runs"));
    TearDown();
    SetUp();
  };
  write_options(HEADROOM_BUILD_DIR "/examples/muon.so", "ns_step = 5");
  refused("trial.toml:36:1: unknown option train.optimizer_options.ns_step of optimizer '");
  write_options(HEADROOM_BUILD_DIR "/examples/muon.so", "ns_steps = 0");
  refused("trial.toml:36:12: train.optimizer_options.ns_steps is the integer 0; it must be ");
  write_options(HEADROOM_BUILD_DIR "/examples/muon.so", "momentum = 1.0");
  refused("trial.toml:35:1: train.optimizer_options: optimizer 'muon' refuses them: momentum is 1.000000");
  write_options("adamv", "");
  refused("trial.toml:29:22: train.optimizer.name is \"adamv\"; it must be \"adam\", \"adamw\", \"sgd\", ");
  write_options("trial_source", "");
  refused("headroom.optimizer/1");
}

TEST_F(OptimizerRun, AFaultInAStepNamesThePluginAndLeavesTheLastCheckpoint) {
  const std::pair<const char*, const char*> faults[] = {
      {"throws", "[faulty_optimizer] optimizer step 11 failed: it is a bad day"},
      {"exits", "faulty_optimizer step: the plugin called exit() there"},
      {"nan", "[faulty_optimizer] optimizer step 11 left element 1 of parameter '"},
      {"overrun", "[faulty_optimizer] a step wrote past the "}};
  for (const auto& [fault, sentence] : faults) {
    const Finished finished =
        run({"train.optimizer.name=faulty_optimizer", "checkpoint.every_steps=4", "train.optimizer_options.at=10",
             "train.optimizer_options.fault=\"" + std::string(fault) + "\""},
            fault);
    EXPECT_EQ(finished.exit_code, 3) << fault << ": " << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << fault << ": " << finished.err;
    EXPECT_EQ(read_json(run_folder(fault) / "checkpoints/last/checkpoint.json").at("step"), 8) << fault;
  }
}

// As with an optimizer of ours: the learning rate is to blame, not the plugin.
TEST_F(OptimizerRun, OneThatGrowsBeyondAllRangeHasDiverged) {
  const Finished finished = run({"train.optimizer.name=faulty_optimizer", "train.optimizer.lr=1e41"});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_NE(finished.err.find("lower train.optimizer.lr"), std::string::npos) << finished.err;
}

TEST_F(OptimizerRun, IsNotNeededToEvaluateWhatItTrained) {
  fs::copy_file(HEADROOM_BUILD_DIR "/examples/muon.so", folder_ / "mine.so");
  ASSERT_EQ(run({"train.optimizer.name=./mine.so", "train.epochs=1"}).exit_code, 0);
  fs::remove(folder_ / "mine.so");
  const Finished evaluated = headroom({"evaluate", run_folder().string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
}

TEST_F(OptimizerRun, PluginsShowListsItsOptions) {
  const Finished shown = headroom({"plugins", "show", HEADROOM_BUILD_DIR "/examples/muon.so"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("ns_steps"), std::string::npos) << shown.out;
}

}  // namespace
}  // namespace headroom
