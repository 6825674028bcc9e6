#include "sweep/sweep_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "../config/files.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

TEST(SweepFolder, RecordsComeBackAsTheyWere) {
  const TemporaryFolder sweep;
  sweep.write("trials/001/log.txt", "");
  const TrialFolder folder(sweep.path(), "001");
  EXPECT_FALSE(folder.record().decided);
  TrialRecord record;
  record.decided = TrialState::infeasible;
  record.why = "too large";
  record.exit_code = 5;
  record.predicted_peak_bytes = 7, record.limit_bytes = 6, record.micro_batch = 5;
  record.retry_micro_batch = 4, record.retry_because = "because";
  record.job = 12;
  folder.write(record);
  EXPECT_EQ(folder.record().json(), record.json());
  EXPECT_EQ(record.json().at("state"), "infeasible");
  sweep.write("trials/001/trial.json", "{ torn");
  EXPECT_EQ(folder.record().json(), TrialRecord().json());
}

// The reason is the last line of a log, in which a plugin may have written anything.
TEST(SweepFolder, AReasonThatIsNoUtf8IsKept) {
  const TemporaryFolder sweep;
  sweep.write("trials/001/log.txt", "");
  const TrialFolder folder(sweep.path(), "001");
  TrialRecord record;
  record.decided = TrialState::failed;
  record.why = "caf\xe9 is not there";
  folder.write(record);
  EXPECT_EQ(folder.record().decided, TrialState::failed);
  EXPECT_EQ(folder.record().why, "caf\xEF\xBF\xBD is not there");
}

TEST(SweepFolder, StatesFollowFromWhatIsThere) {
  const TemporaryFolder sweep;
  sweep.write("trials/001/log.txt", "");
  const TrialFolder folder(sweep.path(), "001");
  const auto state = [&] { return state_on_disk(folder.record(), folder.run()); };
  EXPECT_EQ(state(), TrialState::waiting);
  sweep.write("trials/001/x/20260101-000000-a/lock", "");
  EXPECT_EQ(state(), TrialState::waiting) << "there is nothing to go on with";
  sweep.write("trials/001/x/20260101-000000-a/experiment.toml", "");
  EXPECT_EQ(state(), TrialState::interrupted);
  sweep.write("trials/001/x/20260101-000000-a/summary.json", R"({"state": "resumable", "identity": "abc"})");
  EXPECT_EQ(state(), TrialState::interrupted);
  sweep.write("trials/001/x/20260101-000000-a/summary.json",
              R"({"state": "finished", "identity": "abc", "steps": 10, "window_samples": 8, "train_seconds": 4.0,
                  "memory": {"measured_peak_bytes": 99}, "best": {"value": 0.5, "epoch": 2, "better": "higher"}})");
  EXPECT_EQ(state(), TrialState::finished);
  const TrialRun run = folder.run();
  EXPECT_EQ(run.samples_per_second, 20.0);
  EXPECT_EQ(run.peak_bytes, 99);
  EXPECT_EQ(run.metric, 0.5);
  EXPECT_FALSE(run.lower_wins);
}

TEST(SweepFolder, TheRunBegunLastCounts) {
  const TemporaryFolder sweep;
  const auto older = sweep.write("trials/001/x/b/experiment.toml", "");
  sweep.write("trials/001/x/a/experiment.toml", "");
  fs::last_write_time(older, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  EXPECT_EQ(TrialFolder(sweep.path(), "001").newest_run().filename(), "a");
}

TEST(SweepFolder, ALockIsHeldByOneAlone) {
  const TemporaryFolder sweep;
  sweep.write("trials/001/log.txt", "");
  const TrialFolder folder(sweep.path(), "001");
  const int lock = folder.try_lock();
  ASSERT_GE(lock, 0);
  EXPECT_EQ(folder.try_lock(), -1);
  close(lock);
  const int again = folder.try_lock();
  EXPECT_GE(again, 0);
  close(again);
}

TEST(SweepFolder, ThePlanComesBackInItsOrder) {
  const TemporaryFolder sweep;
  SweepPlan plan;
  plan.name = "x", plan.metric = "val/loss", plan.jobs = 3, plan.threads = 2, plan.plan = false;
  plan.set = {"a=b"}, plan.plugin_dirs = {"/p"};
  plan.trials = {{.id = "001", .settings = {{"z", "1"}, {"a", "\"w\""}}, .choices = {}}};
  sweep.write("sweep.json", plan.json().dump());
  const SweepPlan read = read_sweep_plan(sweep.path());
  EXPECT_EQ(read.json(), plan.json());
  EXPECT_EQ(read.trials.at(0).settings, plan.trials[0].settings);
  EXPECT_EQ(refusal([&] { read_sweep_plan(sweep.path() / "trials"); }).find("[sweep] " + sweep.path().string()), 0u);
}

[[maybe_unused]] int64_t resident_kib() {  // sanitizers hold more
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

// A sweep whose thousand trials are all done: everything is read, nothing is started.
TEST(SweepFolder, AThousandFinishedTrialsAreSmall) {
  const TemporaryFolder sweep;
  SweepPlan plan;
  plan.name = "x", plan.metric = "val/loss";
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    Trial trial{
        .id = "t" + number, .settings = {{"train.batch_size", number}, {"experiment.seed", number}}, .choices = {}};
    const std::string run = "trials/" + trial.id + "/x/run/";
    sweep.write(run + "experiment.toml", "");
    sweep.write(
        run + "summary.json",
        R"({"state": "finished", "identity": "0123456789abcdef0123456789abcdef", "steps": 10, "window_samples": 8,
                    "train_seconds": 4.0, "precision": "fp64", "metrics": {"val/loss": 0.5, "train/loss": 0.25},
                    "best": {"value": 0.5, "epoch": 2, "better": "lower"}})");
    plan.trials.push_back(std::move(trial));
  }
  sweep.write("sweep.json", plan.json().dump());
  EXPECT_EQ(run_sweep(sweep.path(), "/nonexistent", 0), Exit::ok);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_kib(), 30 * 1024);
#endif
  std::ifstream file(sweep.path() / "results.json");
  const auto results = nlohmann::json::parse(file);
  EXPECT_EQ(results.at("counts"), nlohmann::json({{"finished", 1000}}));
  EXPECT_EQ(results.at("identities").at(0).at("trials").size(), 1000u);
  EXPECT_EQ(results.at("identities").at(0).at("agrees"), true);
}

}  // namespace
}  // namespace headroom
