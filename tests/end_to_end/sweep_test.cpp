// Whole sweeps of the trial plugins: what they leave, what fits, what is retried, what stops them.
#include <chrono>
#include <csignal>
#include <optional>
#include <stdlib.h>
#include <thread>

#include "memory/reservations.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Sweep : public TrialRun {
 protected:
  void add_sweep(const std::string& lines) const {
    write_text(folder_ / "trial.toml", read_text(folder_ / "trial.toml") + "\n[sweep]\n" + lines);
  }
  std::vector<std::string> sweep_words(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"sweep", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  fs::path sweep_folder() const { return run_folder(); }
  Json results() const { return read_json(sweep_folder() / "results.json"); }
};

const std::string same_window =
    "\"train.batch_size\" = [2, 4, 8]\n\"train.gradient_accumulation_steps\" = [1, 2, 4]\n"
    "constraint = \"train.batch_size * train.gradient_accumulation_steps == 8\"\n";

TEST_F(Sweep, EqualWindowsHaveOneIdentityAndAgree) {
  add_sweep(same_window);
  // `remember` would count calls of step(), which are more with more micro-batches.
  const Finished finished =
      headroom(sweep_words({"--set", "train.precision=fp64", "--set", "model.options.remember=false", "--jobs", "2"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = results();
  EXPECT_EQ(json.at("counts"), Json({{"finished", 3}})) << finished.out;
  EXPECT_EQ(json.at("jobs"), 2);
  ASSERT_EQ(json.at("identities").size(), 1u) << finished.out;
  const Json& group = json.at("identities").at(0);
  EXPECT_EQ(group.at("trials").size(), 3u);
  EXPECT_EQ(group.at("agrees"), true) << group.dump(2);
  EXPECT_LT(group.at("largest_difference"), 1e-8);
  for (const Json& trial : json.at("trials")) {
    EXPECT_GT(trial.at("peak_bytes"), 0);
    EXPECT_GT(trial.at("samples_per_second"), 0);
    EXPECT_GT(trial.at("predicted_peak_bytes"), 0);
    EXPECT_GT(trial.at("limit_bytes"), trial.at("predicted_peak_bytes"));
    const Json summary = read_json(sweep_folder() / trial.at("run").get<std::string>() / "summary.json");
    EXPECT_EQ(summary.at("memory").at("limit_bytes"), trial.at("limit_bytes")) << "the limit it ran under";
    EXPECT_EQ(trial.at("metric"), summary.at("best").at("value"));
  }
  EXPECT_NE(finished.out.find("3 trials of one identity"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("* "), std::string::npos) << finished.out;
  EXPECT_NE(read_text(sweep_folder() / "results.csv").find("train.batch_size"), std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__)  // what the sanitizer holds is above any small limit
TEST_F(Sweep, WhatDoesNotFitIsNotStarted) {
  add_sweep("\"model.options.hidden\" = [8, 1000000]\n\"train.batch_size\" = [2, 4]\n");
  const Finished finished = headroom(sweep_words({"--set", "memory.limit=120 MiB", "--set", "train.epochs=1"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = results();
  EXPECT_EQ(json.at("counts"), Json({{"finished", 2}, {"infeasible", 1}, {"pruned", 1}})) << finished.out;
  for (const Json& trial : json.at("trials")) {
    if (trial.at("state") == "finished") continue;
    EXPECT_FALSE(trial.contains("run"));
    EXPECT_FALSE(trial.at("why").get<std::string>().empty());
  }
  EXPECT_EQ(json.at("trials").at(3).at("why"),
            "it needs no less than 003_hidden=1000000_batch_size=2, which does not fit");
}
#endif

TEST_F(Sweep, WhatRunsOutIsRetriedWithASmallerMicroBatch) {
  add_sweep("\"experiment.seed\" = [1, 2]\n");
  const Finished finished = headroom_program(sweep_words({"--no-plan", "--set", "train.micro_batch=4"}),
                                             here({"HEADROOM_TEST_FAULT=short:20:2"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = results();
  for (const Json& trial : json.at("trials")) {
    EXPECT_EQ(trial.at("state"), "finished") << trial.dump(2);
    EXPECT_EQ(trial.at("retry").at("micro_batch"), 2);
    EXPECT_EQ(read_json(sweep_folder() / trial.at("run").get<std::string>() / "summary.json").at("window_samples"), 8);
  }
}

// Runs that are not of the sweep may hold what a trial needs; they end some time.
TEST_F(Sweep, ATrialWaitsForRunsThatHoldItsMemory) {
  add_sweep("\"experiment.seed\" = [1]\n");
  const std::string reservations = (folder_ / "reservations").string();
  setenv("HEADROOM_RESERVATIONS", reservations.c_str(), 1);
  std::optional<Reservation> all = Reservation::claim("others", int64_t{1} << 45);
  Program program(sweep_words({"--no-plan", "--set", "train.epochs=1"}),
                  here({"HEADROOM_RESERVATIONS=" + reservations}));
  const auto log = [&] {
    std::error_code none_yet;
    for (const auto& sweep : fs::directory_iterator(folder_ / "runs/trial", none_yet))
      return read_text(sweep.path() / "trials/001_seed=1/log.txt");
    return std::string();
  };
  const auto refused = [&] { return log().find("and memory.limit gives it 1 B") != std::string::npos; };
  const std::string begins = "Z headroom run ";  // an attempt
  const auto is_one = [&] { return log().find(begins) == log().rfind(begins); };
  EXPECT_TRUE(eventually([&] { return refused() || program.ended(); }));
  // As long as it would take to try in vain until it fails.
  for (int i = 0; i < 300 && !program.ended() && is_one(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(refused() && is_one()) << "they hold as much as before: " << log();
  all.reset();
  const Finished finished = program.wait();
  unsetenv("HEADROOM_RESERVATIONS");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(results().at("counts"), Json({{"finished", 1}})) << finished.out << finished.err;
  EXPECT_NE(finished.err.find("there was too little memory beside other runs: it waits for them"), std::string::npos)
      << finished.err;
}

TEST_F(Sweep, OneThatCrashesIsNotTheOthersProblem) {
  add_sweep("\"data.options.broken_at\" = [[], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]\n\"experiment.seed\" = [1, 2]\n");
  const Finished finished = headroom(sweep_words({"--no-plan", "--jobs", "1"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = results();
  EXPECT_EQ(json.at("counts"), Json({{"finished", 2}, {"failed", 2}})) << finished.out;
  EXPECT_EQ(json.at("trials").at(2).at("exit_code"), 4);
  EXPECT_NE(json.at("trials").at(2).at("why").get<std::string>().find("is damaged"), std::string::npos);
}

TEST_F(Sweep, AStormOfFailuresStopsIt) {
  add_sweep("\"experiment.seed\" = [1, 2, 3, 4, 5, 6]\n");
  const Finished finished =
      headroom_program(sweep_words({"--no-plan", "--jobs", "1"}), here({"HEADROOM_TEST_FAULT=crash:1"}));
#if !defined(__SANITIZE_ADDRESS__)  // ends a crash with an exit code of its own
  EXPECT_EQ(finished.exit_code, 70) << finished.err;
#endif
  EXPECT_EQ(results().at("counts"), Json({{"failed", 3}, {"waiting", 3}}));
  EXPECT_NE(finished.err.find("[sweep] trials failed alike, and the rest was not started: "), std::string::npos)
      << finished.err;
}

TEST_F(Sweep, StopsWhenItIsToldAndGoesOn) {
  add_sweep("\"experiment.seed\" = [1, 2]\n");
  const std::string waits = (folder_ / "waits").string();
  Program program(sweep_words({"--no-plan", "--jobs", "1", "--set", "checkpoint.every_steps=5"}),
                  here({"HEADROOM_TEST_PAUSE=train:20:" + waits}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waits) || program.ended(); }));
  program.signal(SIGTERM);
  fs::remove(waits);
  const Finished stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_EQ(results().at("counts"), Json({{"interrupted", 1}, {"waiting", 1}})) << stopped.err;
  const Finished finished = headroom({"sweep", "--resume", sweep_folder().string()});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(results().at("counts"), Json({{"finished", 2}})) << finished.out;
  EXPECT_NE(read_text(sweep_folder() / "trials/001_seed=1/log.txt").find("resumed at step"), std::string::npos);
}

const std::string six_rates = "strategy = \"asha\"\n\"train.optimizer.lr\" = [0.5, 0.03, 0.0001, 0.02, 0.001, 0.01]\n";

TEST_F(Sweep, TheBestOfARungGoOnFromTheirCheckpoints) {
  add_sweep(six_rates);
  const Finished finished = headroom(sweep_words({"--no-plan", "--jobs", "2"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = results();
  EXPECT_EQ(json.at("rung_epochs"), Json({1, 3}));
  EXPECT_GT(json.at("scheduling_ms"), 0);
  size_t done = 0;
  for (const Json& trial : json.at("trials")) {
    const fs::path run = sweep_folder() / trial.at("run").get<std::string>();
    if (trial.at("state") == "dropped") {
      EXPECT_EQ(trial.at("epochs"), 1);
      EXPECT_EQ(trial.at("rung_metrics").size(), 1u);
      continue;
    }
    ++done;
    EXPECT_EQ(trial.at("state"), "finished") << finished.out;
    EXPECT_EQ(trial.at("epochs"), 3);
    EXPECT_EQ(trial.at("rung_metrics").at(1), trial.at("metric"));
    const std::string log = read_text(sweep_folder() / "trials" / trial.at("id").get<std::string>() / "log.txt");
    EXPECT_NE(log.find("resumed at step 15, bit-equal"), std::string::npos) << log;
    const std::string out = "alone" + std::to_string(done);
    ASSERT_EQ(
        this->run({"train.optimizer.lr=" + trial.at("set").at("train.optimizer.lr").get<std::string>()}, out).exit_code,
        0);
    EXPECT_EQ(metrics_without_times(run), metrics_without_times(run_folder(out))) << "as if it had run alone";
  }
  EXPECT_GE(done, 2u);
  EXPECT_LT(done, 6u);
  EXPECT_NE(finished.out.find("dropped, epoch 1"), std::string::npos) << finished.out;
}

TEST_F(Sweep, RefusesWhatItCannotDo) {
  const Finished none = headroom(sweep_words());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("trial.toml has no [sweep]"), std::string::npos) << none.err;
  add_sweep("\"model.options.hiden\" = [1]\n");
  const Finished unknown = headroom(sweep_words());
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("hiden"), std::string::npos) << unknown.err;
  EXPECT_FALSE(fs::exists(folder_ / "runs")) << "nothing is left behind";
  const Finished nowhere = headroom({"sweep", "--resume", folder_.string()});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.err.find("is not a sweep's folder"), std::string::npos) << nowhere.err;
}

TEST_F(Sweep, WithoutSlurmNothingBegins) {
  add_sweep("\"experiment.seed\" = [1, 2]\n");
  const Finished absent =
      headroom_program(sweep_words({"--on", "slurm"}), here({"PATH=" + (folder_ / "nothing").string()}));
  EXPECT_EQ(absent.exit_code, 2) << absent.err;
  EXPECT_NE(absent.err.find("--on slurm needs Slurm's commands, and sbatch is not in PATH"), std::string::npos)
      << absent.err;
  const Finished here = headroom(sweep_words({"--", "--time=5"}));
  EXPECT_EQ(here.exit_code, 2) << here.err;
  EXPECT_NE(here.err.find("add --on slurm, or leave out --time=5"), std::string::npos) << here.err;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace headroom
