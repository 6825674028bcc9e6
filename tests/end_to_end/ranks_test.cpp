// One run in several processes is the run of one, and none of them outlives another. ranks_slow_test.cpp has the rest.
#include <memory>
#include <unistd.h>

#include "ranks_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

TEST_F(RunInRanks, HaveTheWeightsAndMetricsOfOneAfterTwoEpochs) {
  for (const int processes : {2, 3, 4}) {
    const fs::path ours = finished(processes, {}, std::to_string(processes));
    expect_weights(ours, alone().weights);
    expect_metrics(ours, alone().summary);
    EXPECT_EQ(read_json(ours / "checkpoints/last/checkpoint.json").at("surroundings").at("ranks"), processes);
    // One progress line and one log.
    EXPECT_EQ(read_json_lines(ours / "events.jsonl").size(), alone().events);
  }
}

// A window may reach a parameter on one of them alone, and then all of them move it.
TEST_F(RunInRanks, MoveAParameterWhereTheWindowOfOneWould) {
  const std::vector<std::string> rare = {"model.options.rare=17",
                                         "train.optimizer={name=\"adamw\",lr=0.01,weight_decay=0.5}"};
  const auto all_of = [&](int processes) {
    return floating_weights_of(finished(processes, rare, std::to_string(processes)));
  };
  const Tensors expected = all_of(1);
  for (const int processes : {2, 3}) {
    for (const auto& [name, values] : all_of(processes))
      EXPECT_LE(largest(difference(values, expected.at(name))), 1e-8 * largest(expected.at(name))) << name;
  }
}

// Each its own part, of which a little is the other's too.
TEST_F(RunInRanks, KeepTheSamplesOfTheDataOnce) {
  write_text(folder_ / "trial.toml", R"([experiment]
name = "trial"
device = "cpu"
[model]
plugin = "linear_model"
[data]
source = "toy_source"
cache_size = "64 MiB"
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 4000
[train]
epochs = 6
batch_size = 200
)");
  const Finished end = headroom({"run", "trial.toml", "--no-plan", "--out", "cached", "--nproc", "2", "--plugin-dir",
                                 HEADROOM_BUILD_DIR "/examples"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json cache = read_json(run_folder("cached") / "summary.json").at("data").at("cache");
  EXPECT_EQ(cache.at("limit_bytes"), 32 << 20);
  EXPECT_GE(cache.at("items"), 2000) << "half of the samples";
  EXPECT_LE(cache.at("items"), 2400) << "any half of each batch would be nearly all in six epochs";
}

// Of a window of three samples the second has two. Its part has room for one of them at a time, until the first, which
// never has more than one, lends it what it does not use.
TEST_F(RunInRanks, LendEachOtherWhatTheyDoNotUse) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer has memory of its own";
#endif
  write_hungry("trial.toml");
  auto words = run_words({"memory.limit=670MiB", "model.options.activation_mib=50", "data.options.samples=64",
                          "train.batch_size=3", "train.epochs=2"},
                         "lent");
  words.insert(words.end(), {"--nproc", "2"});
  const Finished end = headroom(words);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_NE(end.err.find("memory: rank 1 has a limit of"), std::string::npos) << end.err;
  std::map<int64_t, int64_t> limits;
  for (const nlohmann::json& event : read_json_lines(run_folder("lent") / "events.jsonl")) {
    if (event.at("kind") == "memory_lent" && event.at("limit_bytes_before") == int64_t{335} << 20)
      limits[event.at("rank")] = event.at("limit_bytes");
  }
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_GT(limits[1], int64_t{380} << 20);
  EXPECT_LE(limits[0] + limits[1], int64_t{670} << 20);
  const nlohmann::json memory = read_json(run_folder("lent") / "summary.json").at("memory");
  EXPECT_GE(limits[0], memory.at("measured_peak_bytes"));
  EXPECT_EQ(memory.at("retries").at("train").at("halved"), 0) << "it kept what it needs";
}

// The watchdog is Program::wait().
TEST_F(RunInRanks, EndTogetherWhereOneIsKilledAndGoOnInAnotherNumber) {
  const fs::path waiting = folder_ / "waiting";
  Program program(words_of(3, {"checkpoint.every_steps=4"}, "killed"),
                  here({"HEADROOM_TEST_PAUSE=train:14:" + waiting.string()}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  const std::string variable = "HEADROOM_RANK=2";
  const pid_t trainer = child_of(child_of(program.id(), variable), variable);
  ASSERT_GT(trainer, 0);
  EXPECT_EQ(kill(trainer, SIGKILL), 0);
  fs::remove(waiting);
  const Finished end = program.wait();
  EXPECT_EQ(end.exit_code, 75) << end.err;
  const nlohmann::json ended = read_json(run_folder("killed") / "postmortem.json").at("ended");
  EXPECT_EQ(ended.at("rank"), 2);
  const std::string sentence = ended.at("sentence");
  EXPECT_NE(sentence.find("rank 2 of 3"), std::string::npos) << sentence;
  EXPECT_NE(end.err.find(sentence), std::string::npos) << end.err;

  const Finished on = resumed(run_folder("killed"), 2);
  EXPECT_EQ(on.exit_code, 0) << on.err;
  EXPECT_NE(on.err.find("equal up to rounding only: ranks was 3, is 2"), std::string::npos) << on.err;
  expect_weights(run_folder("killed"), alone().weights);
}

TEST_F(RunInRanks, AnErrorIsToldOnceWithItsOwnExitCode) {
  const Finished end = headroom(words_of(2, {"train.batch_size=0"}, "runs"));
  EXPECT_EQ(end.exit_code, 2) << end.err;
  EXPECT_NE(end.err.find("train.batch_size"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("[rank "), std::string::npos) << end.err;
}

TEST_F(RunInRanks, WhatOneProcessAloneCanDoIsRefused) {
  for (const auto& [set, told] : std::map<std::string, std::string>{
           {"metrics.mode=full", "metrics.mode = \"full\""},
           {"model.options.count_calls=true", "changes its buffers or its state in training passes"}}) {
    const Finished end = headroom(words_of(2, {set}, "runs"));
    EXPECT_EQ(end.exit_code, 2) << end.err;
    EXPECT_NE(end.err.find(told), std::string::npos) << end.err;
  }
}

// Each would do all of it.
TEST_F(RunInRanks, OtherCommandsThatALauncherStartsAreRefused) {
  const StartPlace one_of_two = here(
      {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"export", "nowhere", "--out", "model.safetensors"},
                                             {"export", "nowhere", "--out", "model.onnx", "--format", "onnx"},
                                             {"evaluate", "nowhere"},
                                             {"sweep", "nowhere.toml"}}) {
    const Finished end = headroom_program(words, one_of_two);
    EXPECT_EQ(end.exit_code, 2) << end.err;
    EXPECT_NE(end.err.find("[ranks] torchrun started headroom " + words[0] + " as 2 processes"), std::string::npos)
        << end.err;
  }
}

// Ranks that a launcher started, in whose variables they find each other.
class UnderTorchrun : public RunInRanks {
 protected:
  static constexpr int ranks = 2;
  void start(const std::vector<std::vector<std::string>>& settings, std::vector<std::string> environment = {},
             bool by_one_torchrun = true) {
    const std::string port = std::to_string(20000 + getpid() % 20000);
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> variables = environment;
      const std::string number = std::to_string(rank);
      variables.insert(variables.end(),
                       {"RANK=" + number, "WORLD_SIZE=2", "LOCAL_RANK=" + (by_one_torchrun ? number : "0"),
                        std::string("LOCAL_WORLD_SIZE=") + (by_one_torchrun ? "2" : "1"), "MASTER_ADDR=localhost",
                        "MASTER_PORT=" + port});
      programs_.push_back(std::make_unique<Program>(words_of(1, settings.at(static_cast<size_t>(rank)), "torchrun"),
                                                    here(std::move(variables))));
    }
  }
  std::vector<std::unique_ptr<Program>> programs_;
};

TEST_F(UnderTorchrun, MeetAndTrain) {
  start({{}, {}});
  for (const auto& program : programs_) {
    const Finished end = program->wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  expect_weights(run_folder("torchrun"), alone().weights);
}

// As one tries out --nnodes.
TEST_F(UnderTorchrun, MeetWhereItsTwoMachinesAreThisOne) {
  start({{}, {}}, {}, /*by_one_torchrun=*/false);
  for (const auto& program : programs_) {
    const Finished end = program->wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  expect_weights(run_folder("torchrun"), alone().weights);
}

TEST_F(UnderTorchrun, WhatDiffersIsOneSentenceBeforeTheFirstStep) {
  start({{}, {"train.optimizer={name=\"adamw\",lr=0.02}"}});
  for (const auto& program : programs_) {
    const Finished end = program->wait();
    EXPECT_EQ(end.exit_code, 2) << end.err;
    EXPECT_NE(end.err.find("[ranks] the experiment of rank 1 on host "), std::string::npos) << end.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "torchrun"));
}

// Who says which of them are left?
TEST_F(UnderTorchrun, ToGoOnWithoutALostRankIsRefused) {
  start({{"train.elastic=true"}, {"train.elastic=true"}});
  for (const auto& program : programs_) {
    const Finished end = program->wait();
    EXPECT_EQ(end.exit_code, 2) << end.err;
    EXPECT_NE(end.err.find("train.elastic = true is for those that headroom run --nproc starts"), std::string::npos)
        << end.err;
  }
}

// Nobody but the ranks themselves is there to end the others, not even one that computes.
TEST_F(UnderTorchrun, ARankThatComputesEndsWhereTheFirstIsKilled) {
  const fs::path waiting = folder_ / "waiting";
  start({{}, {}}, {"HEADROOM_TEST_PAUSE=train:6:" + waiting.string()});
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  EXPECT_EQ(kill(programs_[0]->trainer(), SIGKILL), 0);
  const Finished end = programs_[1]->wait();
  EXPECT_EQ(end.exit_code, 75) << end.err;
  EXPECT_NE(end.err.find("rank 0 of 2 on host "), std::string::npos) << end.err;
  EXPECT_EQ(programs_[0]->wait().exit_code, 137);
  EXPECT_EQ(read_json(run_folder("torchrun") / "postmortem.json").at("ended").at("rank"), 0);
}

}  // namespace
}  // namespace headroom
