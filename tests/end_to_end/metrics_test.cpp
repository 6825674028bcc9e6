// The host's metrics in whole runs: of the trial model's prediction [batch, 6] in metres. The model declares mae and
// rmse itself.
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Metrics : public TrialRun {
 protected:
  json summary_of(std::vector<std::string> set, const std::string& out = "runs") {
    const Finished finished = run(set, out);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    said_ = finished.err;
    printed_ = finished.out;
    return read_json(run_folder(out) / "summary.json");
  }
  json evaluate(const std::string& out = "runs") {
    return evaluated(headroom({"evaluate", run_folder(out).string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--json",
                               "--checkpoint", "last"}));
  }
  std::string said_, printed_;
};

std::vector<std::string> sampled(int batches) {
  return {"metrics.mode=sampled", "metrics.train_batches=" + std::to_string(batches),
          "metrics.eval_batches=" + std::to_string(batches)};
}

void expect_near(const json& a, const json& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a.items()) {
    EXPECT_NEAR(value.get<double>(), b.at(name).get<double>(), 1e-12 * std::abs(value.get<double>())) << name;
  }
}

TEST_F(Metrics, TheHostAddsWhatTheModelDoesNotDeclare) {
  const json summary = summary_of({"train.epochs=1"}), metrics = summary.at("metrics"),
             channels = summary.at("channels");
  EXPECT_NEAR(metrics.at("val/mse").get<double>(), std::pow(metrics.at("val/rmse").get<double>(), 2), 1e-6);
  for (const char* split : {"train/", "val/"}) {
    const std::string r2 = std::string(split) + "r2", mse = std::string(split) + "mse";
    ASSERT_EQ(channels.at(r2).size(), 6u);
    ASSERT_EQ(channels.at(mse).size(), 6u);
    double mean = 0.0;
    for (const json& channel : channels.at(r2)) mean += channel.get<double>() / 6.0;
    EXPECT_NEAR(metrics.at(r2).get<double>(), mean, 1e-12);
  }
  EXPECT_FALSE(channels.contains("val/mae")) << "the model's own";
  EXPECT_NE(printed_.find(" m^2\n"), std::string::npos) << printed_;
  EXPECT_EQ(said_.find("r2"), std::string::npos) << "not in the line of the epoch: " << said_;
  for (const json& event : read_json_lines(run_folder() / "events.jsonl")) {
    if (event.at("kind") == "channels") {
      EXPECT_EQ(event.at("values"), channels);
      return;
    }
  }
  FAIL() << "no event tells the channels";
}

TEST_F(Metrics, TheHostsMayDecideWhatIsBest) {
  const json best = summary_of({"experiment.metric=val/r2"}).at("best");
  double highest = -1e300;
  std::istringstream csv(metrics_without_times(run_folder()));
  for (std::string line; std::getline(csv, line);) {
    if (line.find(",val,r2,") != std::string::npos)
      highest = std::max(highest, std::stod(line.substr(line.rfind(',') + 1)));
  }
  EXPECT_EQ(best.at("metric"), "val/r2");
  EXPECT_EQ(best.at("value"), highest);
}

TEST_F(Metrics, ASampleOfAllBatchesIsOnline) {
  const json online = summary_of({}, "online"), all = summary_of(sampled(30), "sampled");  // an epoch has 30 batches
  EXPECT_EQ(online.at("metrics"), all.at("metrics"));
  EXPECT_EQ(online.at("channels"), all.at("channels"));
}

TEST_F(Metrics, ASampleLeavesTheRestOnAllBatchesAndTheWeightsAlone) {
  const json online = summary_of({}, "online").at("metrics"), some = summary_of(sampled(4), "sampled").at("metrics");
  EXPECT_NE(said_.find("metrics: mse, r2 on at most 4 training and 4 evaluation batches"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("metrics.train_batches:"), std::string::npos) << said_;
  for (const char* name : {"train/loss", "train/mae", "val/loss", "val/rmse"})
    EXPECT_EQ(online.at(name), some.at(name));
  for (const char* name : {"train/mse", "train/r2", "val/mse", "val/r2"}) {
    EXPECT_NE(online.at(name), some.at(name)) << name;
    EXPECT_TRUE(std::isfinite(some.at(name).get<double>()));
  }
  const char* weights = "checkpoints/last/model.safetensors";
  EXPECT_TRUE(read_text(run_folder("online") / weights) == read_text(run_folder("sampled") / weights));
  const json again = evaluate("sampled");
  for (const auto& [name, value] : again.items()) EXPECT_EQ(value, some.at(name)) << name;
}

TEST_F(Metrics, FullIsOnlineToRounding) {
  const json online = summary_of({}, "online"), full = summary_of({"metrics.mode=full"}, "full");
  EXPECT_NE(said_.find("metrics: every output of an epoch is kept in memory for mse, r2"), std::string::npos) << said_;
  expect_near(online.at("metrics"), full.at("metrics"));
  const json again = evaluate("full");
  for (const auto& [name, value] : again.items()) EXPECT_EQ(value, full.at("metrics").at(name)) << name;
}

TEST_F(Metrics, KeysThatOnlySampledUsesAreNamed) {
  summary_of({"metrics.train_batches=5", "train.epochs=1"});
  EXPECT_NE(said_.find("metrics.train_batches: only metrics.mode = \"sampled\" uses it"), std::string::npos) << said_;
}

// Until one of its threads takes a signal to the process.
bool has_pending_signal(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("ShdPnd:")) return line.find_first_not_of("0 \t", line.find(':') + 1) != std::string::npos;
  }
  return false;
}

class StoppedMetrics : public Metrics {
 protected:
  // Stopped by a signal in the middle of the second epoch, and resumed. What the resumed part said.
  std::string stop_and_resume(const std::vector<std::string>& set) {
    const fs::path waiting = folder_ / "waiting";
    Program program(run_words(set, "stopped"), here({"HEADROOM_TEST_PAUSE=train:22:" + waiting.string()}));
    EXPECT_TRUE(eventually([&] { return fs::exists(waiting); }));
    // The front would pass it on some time later, perhaps after the epoch.
    const pid_t trainer = program.trainer();
    EXPECT_EQ(kill(trainer, SIGTERM), 0);
    EXPECT_TRUE(eventually([&] { return !has_pending_signal(trainer); }));
    fs::remove(waiting);
    EXPECT_EQ(program.wait().exit_code, 75);
    const Finished resumed =
        headroom({"run", "--resume", run_folder("stopped").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    return resumed.err;
  }
};

TEST_F(StoppedMetrics, ASampleGoesOnWhereItWas) {
  const json undisturbed = summary_of(sampled(12));
  stop_and_resume(sampled(12));
  EXPECT_EQ(metrics_without_times(run_folder("stopped")), metrics_without_times(run_folder()));
  EXPECT_EQ(read_json(run_folder("stopped") / "summary.json").at("channels"), undisturbed.at("channels"));
}

TEST_F(StoppedMetrics, FullSaysThatItBeginsAnew) {
  const std::string said = stop_and_resume({"metrics.mode=full"});
  EXPECT_NE(said.find("metrics.mode = \"full\" keeps nothing in checkpoints"), std::string::npos) << said;
}

}  // namespace
}  // namespace headroom
