// One run in several processes is the run of one: gradients, weights, metrics, samples; and none of them outlives
// another.
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <unistd.h>

#include "record/safetensors.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

using Tensors = std::map<std::string, std::vector<double>>;

// Of a run in fp64; the buffer counts the calls of one process.
Tensors weights_of(const fs::path& run) {
  const SafetensorsFile file(run / "checkpoints/last/model.safetensors");
  Tensors weights;
  for (const TensorBytes& tensor : file.tensors()) {
    if (tensor.name == "seen") continue;
    EXPECT_EQ(tensor.dtype.bits, 64) << tensor.name;
    std::vector<double>& values = weights[tensor.name];
    values.resize(tensor.data.size() / sizeof(double));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  EXPECT_EQ(weights.size(), 4u);
  return weights;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> values = a;
  for (size_t i = 0; i < values.size(); ++i) values[i] -= b.at(i);
  return values;
}

pid_t child_of(pid_t parent, const std::string& with_variable) {
  std::ifstream children("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t child = -1; children >> child;) {
    const std::string variables = '\0' + read_text("/proc/" + std::to_string(child) + "/environ");
    if (variables.find('\0' + with_variable + '\0') != std::string::npos) return child;
  }
  return -1;
}

// A window of 10 samples, which 3 and 4 do not divide.
const std::vector<std::string> kExact = {"train.precision=fp64", "model.options.remember=false", "train.batch_size=5",
                                         "train.epochs=2"};

class RunInRanks : public TrialRun {
 protected:
  std::vector<std::string> words_of(int processes, std::vector<std::string> set, const std::string& out) const {
    set.insert(set.begin(), kExact.begin(), kExact.end());
    std::vector<std::string> words = run_words(set, out);
    words.insert(words.end(), {"--nproc", std::to_string(processes)});
    return words;
  }
  fs::path finished(int processes, const std::vector<std::string>& set, const std::string& out) const {
    const Finished end = headroom(words_of(processes, set, out));
    EXPECT_EQ(end.exit_code, 0) << processes << " processes: " << end.err;
    return run_folder(out);
  }
  static void expect_equal_weights(const fs::path& run, const fs::path& expected) {
    const Tensors theirs = weights_of(expected);
    for (const auto& [name, values] : weights_of(run))
      EXPECT_LE(largest(difference(values, theirs.at(name))), 1e-8 * largest(theirs.at(name))) << name;
  }
  static void expect_equal_metrics(const fs::path& run, const fs::path& expected) {
    const nlohmann::json ours = read_json(run / "summary.json"), theirs = read_json(expected / "summary.json");
    for (const char* key : {"steps", "epochs", "skipped_windows", "identity"}) EXPECT_EQ(ours.at(key), theirs.at(key));
    EXPECT_EQ(ours.at("metrics").size(), theirs.at("metrics").size());
    for (const auto& [name, value] : theirs.at("metrics").items())
      EXPECT_NEAR(ours.at("metrics").at(name), value, 1e-8 * std::abs(value.get<double>())) << name;
  }
};

// One step of plain gradient descent at a rate of 1 takes the gradient off the weights.
TEST_F(RunInRanks, HaveTheGradientOfAWindow) {
  const std::vector<std::string> step = {"train.optimizer={name=\"sgd\",lr=1.0}", "train.max_steps=1",
                                         "train.schedule={name=\"constant\"}", "train.clip_norm=0"};
  std::vector<std::string> standing = step;
  standing[0] = "train.optimizer={name=\"sgd\",lr=1e-300}";
  const Tensors before = weights_of(finished(1, standing, "before")), alone = weights_of(finished(1, step, "1"));
  for (const int processes : {2, 3, 4}) {
    const Tensors ours = weights_of(finished(processes, step, std::to_string(processes)));
    for (const auto& [name, values] : ours) {
      const double most = largest(difference(before.at(name), alone.at(name)));
      EXPECT_GT(most, 0) << name;
      EXPECT_LE(largest(difference(values, alone.at(name))), 1e-12 * most) << name << ", " << processes << " processes";
    }
  }
}

TEST_F(RunInRanks, HaveTheWeightsAndMetricsOfOneAfterTwoEpochs) {
  const fs::path alone = finished(1, {}, "1");
  for (const int processes : {2, 3, 4}) {
    const fs::path ours = finished(processes, {}, std::to_string(processes));
    expect_equal_weights(ours, alone);
    expect_equal_metrics(ours, alone);
    EXPECT_EQ(read_json(ours / "checkpoints/last/checkpoint.json").at("surroundings").at("ranks"), processes);
    // One progress line and one log.
    EXPECT_EQ(read_json_lines(ours / "events.jsonl").size(), read_json_lines(alone / "events.jsonl").size());
  }
}

// A window of two samples leaves two of four processes without any.
TEST_F(RunInRanks, MayBeMoreThanAWindowHasSamples) {
  const std::vector<std::string> set = {"train.batch_size=1", "train.epochs=1"};
  const fs::path alone = finished(1, set, "1"), ours = finished(4, set, "4");
  expect_equal_weights(ours, alone);
  expect_equal_metrics(ours, alone);
}

TEST_F(RunInRanks, SampledMetricsAreOfTheSameBatches) {
  const std::vector<std::string> set = {"metrics={mode=\"sampled\",train_batches=5,eval_batches=3}"};
  expect_equal_metrics(finished(3, set, "3"), finished(1, set, "1"));
}

TEST_F(RunInRanks, GoOnOnAnotherNumberOfProcesses) {
  const fs::path alone = finished(1, {}, "1");
  std::vector<std::string> words = words_of(3, {}, "3");
  words.insert(words.end(), {"--until-epoch", "1"});
  EXPECT_EQ(headroom(words).exit_code, 75);
  const Finished resumed =
      headroom({"run", "--resume", run_folder("3").string(), "--nproc", "2", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("equal up to rounding only: ranks was 3, is 2"), std::string::npos) << resumed.err;
  expect_equal_weights(run_folder("3"), alone);
}

TEST_F(RunInRanks, SaveAndEndOnASignal) {
  const fs::path alone = finished(1, {}, "1");
  const fs::path waiting = folder_ / "waiting";
  Program program(words_of(2, {}, "2"), here({"HEADROOM_TEST_PAUSE=train:6:" + waiting.string()}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  program.signal(SIGTERM);
  fs::remove(waiting);
  const Finished stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  const Finished resumed =
      headroom({"run", "--resume", run_folder("2").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_equal_weights(run_folder("2"), alone);
}

// The watchdog is Program::wait().
TEST_F(RunInRanks, EndTogetherWhereOneIsKilled) {
  const fs::path alone = finished(1, {}, "1");
  for (const int killed : {0, 2}) {
    const std::string out = "killed-" + std::to_string(killed);
    const fs::path waiting = folder_ / ("waiting-" + out);
    Program program(words_of(3, {"checkpoint.every_steps=4"}, out),
                    here({"HEADROOM_TEST_PAUSE=train:14:" + waiting.string()}));
    ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
    const std::string variable = "HEADROOM_RANK=" + std::to_string(killed);
    const pid_t trainer = child_of(child_of(program.id(), variable), variable);
    ASSERT_GT(trainer, 0);
    EXPECT_EQ(kill(trainer, SIGKILL), 0);
    fs::remove(waiting);
    const Finished end = program.wait();
    EXPECT_EQ(end.exit_code, 75) << end.err;
    const nlohmann::json ended = read_json(run_folder(out) / "postmortem.json").at("ended");
    EXPECT_EQ(ended.at("rank"), killed);
    const std::string sentence = ended.at("sentence");
    EXPECT_NE(sentence.find("rank " + std::to_string(killed) + " of 3"), std::string::npos) << sentence;
    EXPECT_NE(end.err.find(sentence), std::string::npos) << end.err;

    const Finished resumed = headroom(
        {"run", "--resume", run_folder(out).string(), "--nproc", "2", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    expect_equal_weights(run_folder(out), alone);
  }
}

TEST_F(RunInRanks, AnErrorIsToldOnceWithItsOwnExitCode) {
  std::vector<std::string> words = words_of(2, {"train.batch_size=0"}, "runs");
  const Finished end = headroom(words);
  EXPECT_EQ(end.exit_code, 2) << end.err;
  const size_t first = end.err.find("train.batch_size");
  ASSERT_NE(first, std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("[rank "), std::string::npos) << end.err;
}

TEST_F(RunInRanks, WhatOneProcessAloneCanDoIsRefused) {
  const Finished end = headroom(words_of(2, {"metrics.mode=full"}, "runs"));
  EXPECT_EQ(end.exit_code, 2) << end.err;
  EXPECT_NE(end.err.find("metrics.mode = \"full\""), std::string::npos) << end.err;
}

// Under the variables of torchrun, whose address rank 0 listens at.
TEST_F(RunInRanks, MeetAsTorchrunSays) {
  const fs::path alone = finished(1, {}, "1");
  const std::string port = std::to_string(20000 + getpid() % 20000);
  std::vector<std::unique_ptr<Program>> programs;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string number = std::to_string(rank);
    programs.push_back(std::make_unique<Program>(
        words_of(1, {}, "torchrun"), here({"RANK=" + number, "WORLD_SIZE=2", "LOCAL_RANK=" + number,
                                           "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port})));
  }
  for (const auto& program : programs) {
    const Finished end = program->wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  expect_equal_weights(run_folder("torchrun"), alone);
}

}  // namespace
}  // namespace headroom
