// A run that was stopped, by whatever signal and wherever, and resumed ends with the very bytes of the undisturbed run.
#include <csignal>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "headroom/sdk/cpu_kernel.hpp"
#include "memory/reservations.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct Stop {
  std::string name;
  int signal;
  bool to_trainer;    // else to the front, which forwards it
  std::string pause;  // "train:STEP" or "eval:STEP": where the model waits for the signal
  int exit_code;
};

void PrintTo(const Stop& stop, std::ostream* out) { *out << stop.name; }

const std::vector<std::string> kCheckpoints = {"checkpoint.every_steps=4", "checkpoint.keep=3"};

// A run nobody disturbs; its folder goes with it.
class Reference : public TrialRun {
 public:
  Reference() {
    SetUp();
    const Finished finished = run(kCheckpoints);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    run_ = run_folder();
  }
  ~Reference() override { TearDown(); }
  void TestBody() override {}
  fs::path run_;
};

bool can_be_locked(const fs::path& file) {
  const int lock = open(file.c_str(), O_RDWR | O_CLOEXEC);
  const bool free = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return free;
}

class Resume : public TrialRun {
 protected:
  // The undisturbed run, once for all tests: three epochs of 15 steps, a checkpoint every 4.
  static const fs::path& undisturbed() {
    static Reference reference;
    return reference.run_;
  }

  // Starts a run that waits in `pause` and returns with it waiting there.
  std::unique_ptr<Program> start_paused(const std::string& pause) {
    const fs::path waiting = folder_ / "waiting";
    auto program = std::make_unique<Program>(run_words(kCheckpoints),
                                             here({"HEADROOM_TEST_PAUSE=" + pause + ":" + waiting.string()}));
    EXPECT_TRUE(eventually([&] { return fs::exists(waiting); })) << "the model never came to " << pause;
    return program;
  }
  void let_go() { fs::remove(folder_ / "waiting"); }

  Finished resume(const std::vector<std::string>& set = {}, const std::vector<std::string>& environment = {}) {
    std::vector<std::string> words = {"run", "--resume", run_folder().string(), "--plugin-dir",
                                      HEADROOM_TEST_PLUGIN_DIR};
    for (const std::string& word : set) words.insert(words.end(), {"--set", word});
    return headroom_program(words, here(environment));
  }

  void expect_as_undisturbed() {
    for (const char* file : {"checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors",
                             "checkpoints/best/model.safetensors"}) {
      EXPECT_EQ(read_text(run_folder() / file) == read_text(undisturbed() / file), true) << file << " differs";
    }
    EXPECT_EQ(metrics_without_times(run_folder()), metrics_without_times(undisturbed()));
    const auto ours = read_json(run_folder() / "summary.json"), theirs = read_json(undisturbed() / "summary.json");
    for (const char* key : {"state", "identity", "epochs", "steps", "best", "metrics", "channels", "skipped_windows"})
      EXPECT_EQ(ours.at(key), theirs.at(key)) << key;
  }
};

class ResumeAfter : public Resume, public testing::WithParamInterface<Stop> {};

TEST_P(ResumeAfter, EndsBitEqual) {
  const Stop stop = GetParam();
  const auto program = start_paused(stop.pause);
  if (stop.to_trainer)
    kill(program->trainer(), stop.signal);
  else
    program->signal(stop.signal);
  if (stop.signal != SIGKILL) let_go();
  const Finished stopped = program->wait();
  ASSERT_EQ(stopped.exit_code, stop.exit_code) << stopped.err;
  let_go();
  EXPECT_TRUE(fs::exists(run_folder() / "checkpoints/last"));

  const Finished resumed = resume();
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("bit-equal to an undisturbed run"), std::string::npos) << resumed.err;
  expect_as_undisturbed();
}

// Step 22 is in the middle of the second epoch, neither a row of metrics nor a checkpoint; step 30 ends it.
INSTANTIATE_TEST_SUITE_P(Signals, ResumeAfter,
                         testing::Values(Stop{"KillOfTheTrainer", SIGKILL, true, "train:22", 137},
                                         Stop{"Term", SIGTERM, false, "train:22", 75},
                                         Stop{"Usr1", SIGUSR1, false, "train:21", 75},
                                         Stop{"Int", SIGINT, false, "train:22", 130},
                                         Stop{"Hangup", SIGHUP, false, "train:33", 75},
                                         Stop{"TermInEvaluation", SIGTERM, false, "eval:30", 75},
                                         Stop{"KillInEvaluation", SIGKILL, true, "eval:30", 137}),
                         [](const auto& stop) { return stop.param.name; });

// Before its first windows have shown what it takes.
TEST_F(Resume, ClaimsWhatTheRunHadReserved) {
  std::vector<std::string> words = run_words(kCheckpoints);
  words.insert(words.end(), {"--until-epoch", "1"});
  ASSERT_EQ(headroom(words).exit_code, 75);
  const fs::path file = run_folder() / "checkpoints/last/checkpoint.json";
  nlohmann::json checkpoint = read_json(file);
  auto& reserved = checkpoint.at("position").at("reserved_bytes");
  ASSERT_GT(reserved, 0);
  reserved = reserved.get<int64_t>() + (100 << 20);  // as if it had taken more
  write_text(file, checkpoint.dump());

  const std::string reservations = (folder_ / "reservations").string();
  setenv("HEADROOM_RESERVATIONS", reservations.c_str(), 1);
  const fs::path waiting = folder_ / "waiting";
  Program program({"run", "--resume", run_folder().string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR},
                  here({"HEADROOM_TEST_PAUSE=train:17:" + waiting.string(), "HEADROOM_RESERVATIONS=" + reservations}));
  EXPECT_TRUE(eventually([&] { return fs::exists(waiting); }));
  const auto runs = other_runs();
  let_go();
  EXPECT_EQ(program.wait().exit_code, 0);
  unsetenv("HEADROOM_RESERVATIONS");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_GE(runs[0].reserved_bytes, reserved.get<int64_t>());
}

TEST_F(Resume, AfterTheEndOfAnEpochItWasToStopAt) {
  std::vector<std::string> words = run_words(kCheckpoints);
  words.insert(words.end(), {"--until-epoch", "1"});
  EXPECT_EQ(headroom(words).exit_code, 75);
  const nlohmann::json first = read_json(run_folder() / "summary.json");
  EXPECT_EQ(first.at("state"), "resumable");
  EXPECT_EQ(first.at("epochs"), 1);
  const Finished again = headroom(
      {"run", "--resume", run_folder().string(), "--until-epoch", "1", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(again.exit_code, 75) << again.err;
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), first.at("steps")) << "there is nothing to do";
  ASSERT_EQ(resume().exit_code, 0);
  expect_as_undisturbed();
}

TEST_F(Resume, TwiceIsAsGoodAsOnce) {
  for (const std::string pause : {"train:6", "train:23"}) {
    const fs::path waiting = folder_ / "waiting";
    auto words = pause == "train:6" ? run_words(kCheckpoints)
                                    : std::vector<std::string>{"run", "--resume", run_folder().string(), "--plugin-dir",
                                                               HEADROOM_TEST_PLUGIN_DIR};
    Program program(words, here({"HEADROOM_TEST_PAUSE=" + pause + ":" + waiting.string()}));
    ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
    program.signal(SIGTERM);
    let_go();
    EXPECT_EQ(program.wait().exit_code, 75);
  }
  EXPECT_EQ(resume().exit_code, 0);
  expect_as_undisturbed();
}

TEST_F(Resume, BeforeTheFirstCheckpointStartsAgain) {
  const auto program = start_paused("train:2");
  kill(program->trainer(), SIGKILL);
  EXPECT_EQ(program->wait().exit_code, 137);
  let_go();
  EXPECT_FALSE(fs::exists(run_folder() / "checkpoints/last"));
  const Finished resumed = resume();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_as_undisturbed();
}

TEST_F(Resume, OfAFinishedRunChangesNothing) {
  EXPECT_EQ(run(kCheckpoints).exit_code, 0);
  const Finished again = resume();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  expect_as_undisturbed();
}

TEST_F(Resume, SecondInterruptEndsAtOnce) {
  const auto program = start_paused("train:22");
  program->signal(SIGINT);
  EXPECT_TRUE(eventually([&] {  // again and again: two that arrive together are one
    program->signal(SIGINT);
    return program->ended();
  }));
  EXPECT_EQ(program->wait().exit_code, 130);
  EXPECT_TRUE(fs::exists(folder_ / "waiting")) << "the step was waited for";
  EXPECT_FALSE(fs::exists(run_folder() / "summary.json"));
  let_go();
  EXPECT_EQ(resume().exit_code, 0);
  expect_as_undisturbed();
}

TEST_F(Resume, TheTrainerLeavesWithItsSupervisor) {
  const auto program = start_paused("train:22");
  program->signal(SIGKILL);
  EXPECT_EQ(program->wait().exit_code, 128 + SIGKILL);
  let_go();
  EXPECT_TRUE(eventually([&] { return can_be_locked(run_folder() / "lock"); }))
      << "the trainer goes on without its supervisor";
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("state"), "resumable");
  EXPECT_EQ(resume().exit_code, 0);
  expect_as_undisturbed();
}

TEST_F(Resume, CrashOfTheTrainerIsABug) {
  const auto program = start_paused("train:22");
  kill(program->trainer(), SIGABRT);
  const Finished crashed = program->wait();
  EXPECT_EQ(crashed.exit_code, 70);
  EXPECT_NE(crashed.err.find("crashed with SIGABRT"), std::string::npos) << crashed.err;
  let_go();
  EXPECT_EQ(resume().exit_code, 0);
  expect_as_undisturbed();
}

TEST_F(Resume, WithOtherReadersIsBitEqualToo) {
  const auto program = start_paused("train:22");
  program->signal(SIGTERM);
  let_go();
  EXPECT_EQ(program->wait().exit_code, 75);
  EXPECT_EQ(resume({"data.num_workers=0"}).exit_code, 0);
  expect_as_undisturbed();
}

TEST_F(Resume, OnAnotherProcessorSaysSo) {
  if (sdk::best_cpu_isa() == sdk::CpuIsa::baseline) GTEST_SKIP() << "this processor has no kernels but the plain ones";
  const std::string other = sdk::cpu_isa() == sdk::CpuIsa::baseline ? "avx2" : "baseline";
  const auto program = start_paused("train:22");
  program->signal(SIGTERM);
  let_go();
  EXPECT_EQ(program->wait().exit_code, 75);
  const Finished resumed = resume({}, {"HEADROOM_MAX_CPU_ISA=" + other});
  EXPECT_EQ(resumed.exit_code, 0);
  EXPECT_EQ(resumed.err.find("bit-equal"), std::string::npos);
  EXPECT_NE(resumed.err.find("equal up to rounding only: processor was \""), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find(", kernels " + other), std::string::npos) << resumed.err;
}

TEST_F(Resume, WithAnotherSplitSaysWhatDiffers) {
  const auto program = start_paused("train:22");
  program->signal(SIGTERM);
  let_go();
  EXPECT_EQ(program->wait().exit_code, 75);
  const Finished resumed = resume({"train.micro_batch=2"});
  EXPECT_EQ(resumed.exit_code, 0);
  EXPECT_EQ(resumed.err.find("bit-equal"), std::string::npos);
  EXPECT_NE(resumed.err.find("equal up to rounding only: micro_batch was \"auto\", is 2"), std::string::npos)
      << resumed.err;
}

TEST_F(Resume, WithAPluginBuiltAnewDoesNotSayBitEqual) {
  EXPECT_EQ(run({"train.max_steps=22", "checkpoint.every_steps=4", "train.schedule={name=\"constant\"}"}).exit_code, 0);
  const fs::path checkpoint = fs::canonical(run_folder() / "checkpoints/last") / "checkpoint.json";
  nlohmann::json json = read_json(checkpoint);
  json.at("surroundings").at("plugins").at("trial_model") = "another build";
  write_text(checkpoint, json.dump());
  const Finished resumed = resume({"train.max_steps=30"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.err.find("bit-equal"), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find("plugin 'trial_model' was rebuilt since"), std::string::npos) << resumed.err;
}

TEST_F(Resume, WithOtherMathematicsOnlyWhenTold) {
  EXPECT_EQ(run({"train.max_steps=22", "checkpoint.every_steps=4"}).exit_code, 0);
  const std::string file = read_text(run_folder() / "experiment.toml");
  const Finished refused = resume({"train.optimizer.lr=0.02", "experiment.seed=4", "train.max_steps=24"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("[resume] " + run_folder().string() +
                             " was trained with other settings: train.optimizer.lr was 0.01, is 0.02; "
                             "experiment.seed was 3, is 4; "),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("--changed"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("rounding"), std::string::npos) << refused.err;
  EXPECT_EQ(read_text(run_folder() / "experiment.toml"), file) << "the run is left as it was";
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("state"), "finished");

  const Finished longer = resume({"train.max_steps=23"});
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_NE(longer.err.find("another length: train.max_steps was 22, is 23"), std::string::npos) << longer.err;

  const Finished told =
      headroom({"run", "--resume", run_folder().string(), "--changed", "--set", "train.optimizer.lr=0.02", "--set",
                "train.max_steps=24", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(told.err.find("trained with other settings from here on: train.optimizer.lr was 0.01, is 0.02"),
            std::string::npos)
      << told.err;
  EXPECT_EQ(told.err.find("bit-equal"), std::string::npos) << told.err;
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 24);
}

TEST_F(Resume, OnOtherDataOnlyWhenTold) {
  ASSERT_EQ(run({"data.options.path=made", "data.synth={seed=7}", "train.epochs=1"}).exit_code, 0);
  write_text(folder_ / "made/seed.txt", "8\n");
  const Finished refused = resume({"train.epochs=2"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("other settings: the data's content (its id) was \""), std::string::npos) << refused.err;
  write_text(folder_ / "made/seed.txt", "7\n");
  EXPECT_EQ(resume({"train.epochs=2"}).exit_code, 0) << "the same data again";
}

TEST_F(Resume, GoesOnBeyondMaxSteps) {
  EXPECT_EQ(run({"checkpoint.every_steps=4", "checkpoint.keep=3", "train.schedule.name=constant", "train.max_steps=22"})
                .exit_code,
            0);
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 22);
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("epochs"), 1);
  EXPECT_EQ(resume({"train.max_steps=0"}).exit_code, 0);
  EXPECT_EQ(run({"train.schedule.name=constant"}, "whole").exit_code, 0);
  EXPECT_TRUE(read_text(run_folder() / "checkpoints/last/model.safetensors") ==
              read_text(run_folder("whole") / "checkpoints/last/model.safetensors"));
}

TEST_F(Resume, AFolderThatIsNoRunIsRefused) {
  fs::create_directory(folder_ / "empty");
  for (const std::string folder : {"empty", "nowhere", "trial.toml"}) {
    const Finished finished = headroom({"run", "--resume", folder});
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_NE(finished.err.find(folder), std::string::npos) << finished.err;
  }
}

TEST_F(Resume, AFolderThatAnotherProcessHoldsIsRefused) {
  EXPECT_EQ(run({"train.epochs=1"}).exit_code, 0);
  const int lock = open((run_folder() / "lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  const std::string before = read_text(run_folder() / "metrics.csv");
  const Finished finished = resume();
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_NE(finished.err.find("is being written by"), std::string::npos) << finished.err;
  EXPECT_EQ(read_text(run_folder() / "metrics.csv"), before);
  close(lock);
}

TEST_F(Resume, ADamagedCheckpointFallsBackToTheOneBefore) {
  const auto program = start_paused("train:22");
  kill(program->trainer(), SIGKILL);
  program->wait();
  let_go();
  write_text(run_folder() / "checkpoints/step-00000020/state.safetensors", "damaged");
  const Finished resumed = resume();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resumed at step 16"), std::string::npos) << resumed.err;
  expect_as_undisturbed();
}

// The run's own experiment.toml lies elsewhere: a relative path in it would mean another file.
TEST_F(Resume, MakesTheSameDataAgainFromTheSameFiles) {
  fs::create_directory(folder_ / "seeds");
  write_text(folder_ / "seeds/seven.txt", "7");
  ASSERT_EQ(run({"data.options.path=made", "data.synth={like=\"seeds/seven.txt\"}", "train.epochs=1"}).exit_code, 0);
  const auto content = read_json(run_folder() / "summary.json").at("content_id");
  fs::remove_all(folder_ / "made");
  const Finished resumed = resume();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(read_text(folder_ / "made/seed.txt"), "7\n");
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("content_id"), content);
}

TEST_F(Resume, WithoutAnyGoodCheckpointSaysSo) {
  EXPECT_EQ(run({"train.epochs=1", "checkpoint.keep=1"}).exit_code, 0);
  const auto last = run_folder() / "checkpoints/last";
  const std::string json = read_text(last / "checkpoint.json");
  write_text(last / "checkpoint.json", "{}");
  const Finished finished = resume({"train.epochs=2"});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_NE(finished.err.find("checkpoint"), std::string::npos) << finished.err;
}

// Before a gradient has reached a parameter for the first time, and after it.
TEST_F(Resume, AParameterThatFewWindowsReachGoesOnAsItWas) {
  const std::vector<std::string> set = {"checkpoint.every_steps=1", "model.options.rare=97",
                                        "train.optimizer={name=\"adamw\",lr=0.01,weight_decay=0.5}"};
  ASSERT_EQ(run(set, "whole").exit_code, 0);
  for (const int step : {1, 4, 9, 22}) {
    const std::string out = "killed" + std::to_string(step);
    ASSERT_NO_FATAL_FAILURE(
        run_killed_and_resumed(set, out, "HEADROOM_TEST_PAUSE=train:" + std::to_string(step) + ":"));
    for (const char* file : {"checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors"})
      EXPECT_EQ(read_text(run_folder(out) / file) == read_text(run_folder("whole") / file), true) << step << file;
  }
}

}  // namespace
}  // namespace headroom
