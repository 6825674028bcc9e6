// Runs in several processes: single gradients, odd numbers, signals and further deaths.
#include "ranks_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

using SlowRunInRanks = RunInRanks;

// One step of plain gradient descent at a rate of 1 takes the gradient off the weights.
TEST_F(SlowRunInRanks, HaveTheGradientOfAWindow) {
  const std::vector<std::string> step = {"train.optimizer={name=\"sgd\",lr=1.0}", "train.max_steps=1",
                                         "train.schedule={name=\"constant\"}", "train.clip_norm=0"};
  std::vector<std::string> standing = step;
  standing[0] = "train.optimizer={name=\"sgd\",lr=1e-300}";
  const Tensors before = weights_of(finished(1, standing, "before")), one = weights_of(finished(1, step, "1"));
  for (const int processes : {2, 3, 4}) {
    const Tensors ours = weights_of(finished(processes, step, std::to_string(processes)));
    for (const auto& [name, values] : ours) {
      const double most = largest(difference(before.at(name), one.at(name)));
      EXPECT_GT(most, 0) << name;
      EXPECT_LE(largest(difference(values, one.at(name))), 1e-12 * most) << name << ", " << processes << " processes";
    }
  }
}

// A window of two samples leaves two of four processes without any.
TEST_F(SlowRunInRanks, MayBeMoreThanAWindowHasSamples) {
  const std::vector<std::string> set = {"train.batch_size=1", "train.epochs=1"};
  const Alone one = alone(set);
  const fs::path ours = finished(4, set, "4");
  expect_weights(ours, one.weights);
  expect_metrics(ours, one.summary);
}

TEST_F(SlowRunInRanks, SampledMetricsAreOfTheSameBatches) {
  const std::vector<std::string> set = {"metrics={mode=\"sampled\",train_batches=5,eval_batches=3}"};
  const Alone one = alone(set);
  expect_metrics(finished(3, set, "3"), one.summary);
}

TEST_F(SlowRunInRanks, GoOnOnAnotherNumberOfProcesses) {
  std::vector<std::string> words = words_of(3, {}, "3");
  words.insert(words.end(), {"--until-epoch", "1"});
  EXPECT_EQ(headroom(words).exit_code, 75);
  const Finished on = resumed(run_folder("3"), 4);
  EXPECT_EQ(on.exit_code, 0) << on.err;
  expect_weights(run_folder("3"), alone().weights);
  expect_metrics(run_folder("3"), alone().summary);
}

TEST_F(SlowRunInRanks, SaveAndEndOnASignal) {
  const fs::path waiting = folder_ / "waiting";
  Program program(words_of(2, {}, "2"), here({"HEADROOM_TEST_PAUSE=train:6:" + waiting.string()}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  program.signal(SIGTERM);
  fs::remove(waiting);
  const Finished stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  const Finished on = resumed(run_folder("2"), 1);
  EXPECT_EQ(on.exit_code, 0) << on.err;
  expect_weights(run_folder("2"), alone().weights);
}

// In training, and while an evaluation is divided.
TEST_F(SlowRunInRanks, EndTogetherWhereverOneIsKilled) {
  for (const char* where : {"train:14", "eval:12"}) {
    for (const int killed : {0, 1, 2}) {
      const std::string out = std::string("killed-") + where + "-" + std::to_string(killed);
      const fs::path waiting = folder_ / ("waiting-" + out);
      Program program(words_of(3, {"checkpoint.every_steps=4"}, out),
                      here({std::string("HEADROOM_TEST_PAUSE=") + where + ":" + waiting.string()}));
      ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
      const std::string variable = "HEADROOM_RANK=" + std::to_string(killed);
      const pid_t trainer = child_of(child_of(program.id(), variable), variable);
      ASSERT_GT(trainer, 0);
      EXPECT_EQ(kill(trainer, SIGKILL), 0);
      fs::remove(waiting);
      const Finished end = program.wait();
      EXPECT_EQ(end.exit_code, 75) << out << end.err;
      EXPECT_EQ(read_json(run_folder(out) / "postmortem.json").at("ended").at("rank"), killed) << out;
      const Finished on = resumed(run_folder(out), 1 + killed);
      EXPECT_EQ(on.exit_code, 0) << on.err;
      expect_weights(run_folder(out), alone().weights);
    }
  }
}

}  // namespace
}  // namespace headroom
