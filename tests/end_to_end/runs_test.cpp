// What a run leaves, and that it repeats.
#include <cctype>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Runs : public TrialRun {};

TEST_F(Runs, LeavesEverythingALaterReaderNeeds) {
  const Finished finished = run({"checkpoint.every_steps=20", "model.options.remember=false"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const fs::path folder = run_folder();
  for (const char* file : {"experiment.toml", "events.jsonl", "metrics.csv", "memory.jsonl", "summary.json",
                           "report.html", "checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors",
                           "checkpoints/last/checkpoint.json", "checkpoints/best/model.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(folder / file)) << file;
  }
  const auto summary = read_json(folder / "summary.json");
  EXPECT_EQ(summary.at("state"), "finished");
  EXPECT_EQ(summary.at("steps"), 45);
  EXPECT_EQ(summary.at("epochs"), 3);
  EXPECT_EQ(summary.at("samples"), (nlohmann::json{{"train", 120}, {"val", 40}, {"test", 0}}));
  EXPECT_EQ(summary.at("window_samples"), 8);
  EXPECT_GT(summary.at("peak_resident_bytes"), 50 << 20);
  const std::string page = read_text(folder / "report.html"), waited = "waited for data: ";
  const size_t told = page.find(waited);
  ASSERT_NE(told, std::string::npos);
  EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(page.at(told + waited.size())))) << page.substr(told, 60);
  for (const char* metric : {"train/loss", "train/mae", "val/loss", "val/mae", "val/rmse", "val/closeness"}) {
    EXPECT_TRUE(summary.at("metrics").contains(metric)) << metric;
  }
  // RMSE is the root of the pooled mean, and the loss here is that mean.
  EXPECT_NEAR(summary.at("metrics").at("val/rmse").get<double>(),
              std::sqrt(summary.at("metrics").at("val/loss").get<double>()), 1e-9);

  const auto events = read_json_lines(folder / "events.jsonl");
  EXPECT_EQ(events.front().at("kind"), "start");
  EXPECT_EQ(events.front().at("identity"), summary.at("identity"));
  EXPECT_EQ(events.back().at("kind"), "end");
  const auto collections = std::count_if(events.begin(), events.end(), [](const nlohmann::json& event) {
    return event.at("kind") == "gc_point" && event.at("what") == "gc";
  });
  EXPECT_EQ(collections, summary.at("memory").at("gc_points").at("gc").at("count"));
  EXPECT_GE(read_json_lines(folder / "memory.jsonl").size(), 5u);  // at the start and every 10 steps
}

TEST_F(Runs, SaysOnStdoutWhatCameOutAndOnStderrHowItWent) {
  const Finished finished = run({"train.epochs=1"});
  EXPECT_NE(finished.out.find("finished: 15 steps, 1 epochs"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("val/mae"), std::string::npos);
  EXPECT_NE(finished.out.find("run folder: " + fs::relative(run_folder(), folder_).string()), std::string::npos)
      << finished.out;
  EXPECT_NE(finished.err.find(
                "data: 120 training, 40 validation, 0 test samples; windows of 8, 15 steps an epoch; 1 thread on cpu"),
            std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("[Step 0] Memory - Process: "), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("[Step 10] Memory - Process: "), std::string::npos) << finished.err;
}

TEST_F(Runs, NamesKeysThatHaveNoEffect) {
  const Finished finished = run({"train.epochs=1", "memory.device_limit=1 GiB"});
  EXPECT_NE(finished.err.find("memory.device_limit: experiment.device is \"cpu\""), std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find("train.epochs: "), std::string::npos);
}

TEST_F(Runs, RepeatsToTheBitWhateverTheReaders) {
  ASSERT_EQ(run({}, "two").exit_code, 0);
  ASSERT_EQ(run({"data.num_workers=0"}, "zero").exit_code, 0);
  ASSERT_EQ(run({"data.num_workers=4", "data.prefetch_factor=3", "data.persistent_workers=false"}, "four").exit_code,
            0);
  EXPECT_TRUE(weights("two") == weights("zero"));
  EXPECT_TRUE(weights("two") == weights("four"));
  EXPECT_EQ(metrics_without_times(run_folder("two")), metrics_without_times(run_folder("four")));
  EXPECT_EQ(read_json(run_folder("two") / "summary.json").at("identity"),
            read_json(run_folder("four") / "summary.json").at("identity"));
}

TEST_F(Runs, ASampleCacheChangesNothingAndSaysWhatItDid) {
  ASSERT_EQ(run({}, "without").exit_code, 0);
  const Finished finished = run({"data.cache_size=1 MiB"}, "with");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(weights("with") == weights("without"));
  EXPECT_EQ(metrics_without_times(run_folder("with")), metrics_without_times(run_folder("without")));
  EXPECT_NE(finished.err.find("cache: 40 items, 0 / 1 MB, 66.67 % hits (80 hits, 40 misses), 0 evictions"),
            std::string::npos)
      << "validation samples, in three epochs:\n"
      << finished.err;
  EXPECT_NE(finished.err.find("the sample cache keeps validation samples"), std::string::npos) << finished.err;
  const auto cache = read_json(run_folder("with") / "summary.json").at("data").at("cache");
  EXPECT_EQ(cache.at("items"), 40);
  EXPECT_EQ(cache.at("hits"), 80);
  EXPECT_EQ(cache.at("limit_bytes"), 1 << 20);
}

TEST_F(Runs, ACommandGetsItsEventsAndCannotHarmIt) {
  ASSERT_EQ(run({"record.events_to=cat > told.jsonl"}).exit_code, 0);
  EXPECT_EQ(read_text(folder_ / "told.jsonl"), read_text(run_folder() / "events.jsonl"));
  const Finished left_alone = run({"record.events_to=exit 3"}, "left");
  EXPECT_EQ(left_alone.exit_code, 0);
  EXPECT_NE(left_alone.err.find("it ended with exit code 3; the run goes on"), std::string::npos) << left_alone.err;
  EXPECT_EQ(metrics_without_times(run_folder("left")), metrics_without_times(run_folder()));
}

TEST_F(Runs, AnotherSeedIsAnotherRun) {
  ASSERT_EQ(run({"train.epochs=1"}, "a").exit_code, 0);
  ASSERT_EQ(run({"train.epochs=1", "experiment.seed=4"}, "b").exit_code, 0);
  EXPECT_FALSE(weights("a") == weights("b"));
  EXPECT_NE(read_json(run_folder("a") / "summary.json").at("identity"),
            read_json(run_folder("b") / "summary.json").at("identity"));
}

TEST_F(Runs, TheResolvedExperimentRunsAgainToTheBit) {
  ASSERT_EQ(run({"train.batch_size=8", "model.options.dropout=0.3"}).exit_code, 0);
  fs::copy_file(run_folder() / "experiment.toml", folder_ / "again.toml");
  const Finished again = headroom({"run", "again.toml", "--out", "again", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(weights("runs") == weights("again"));
  EXPECT_EQ(read_text(run_folder() / "experiment.toml"), read_text(run_folder("again") / "experiment.toml"));
}

TEST_F(Runs, EvaluateFindsWhatTheRunFound) {
  ASSERT_EQ(run().exit_code, 0);
  const auto summary = read_json(run_folder() / "summary.json");
  const auto evaluate = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"evaluate", run_folder().string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR};
    words.insert(words.end(), more.begin(), more.end());
    return headroom(words);
  };
  const auto last = evaluated(evaluate({"--checkpoint", "last", "--json"}));
  ASSERT_EQ(last.size(), 6u);  // loss, mae, rmse, closeness; mse and r2 by the host
  for (const auto& [name, value] : last.items()) EXPECT_EQ(value, summary.at("metrics").at(name)) << name;
  EXPECT_EQ(evaluated(evaluate({"--json"})).at("val/loss"), summary.at("best").at("value"));
  EXPECT_EQ(evaluated(evaluate({"--json", "--set", "data.num_workers=0", "--checkpoint",
                                (run_folder() / "checkpoints/best").string()}))
                .at("val/loss"),
            summary.at("best").at("value"));
  EXPECT_EQ(evaluated(evaluate({"--json", "--split", "train"})).count("train/loss"), 1u);

  const Finished plain = evaluate({});
  EXPECT_NE(plain.out.find("val/mae"), std::string::npos);
  EXPECT_NE(plain.out.find(" m\n"), std::string::npos) << "the unit: " << plain.out;

  EXPECT_EQ(evaluate({"--split", "test"}).exit_code, 2);  // no samples there
  EXPECT_EQ(evaluate({"--split", "nonsense"}).exit_code, 2);
  EXPECT_EQ(evaluate({"--checkpoint", "nowhere"}).exit_code, 2);
  EXPECT_EQ(headroom({"evaluate", folder_.string()}).exit_code, 2);
}

TEST_F(Runs, TwoAtOnceGetFoldersOfTheirOwn) {
  Program first(run_words({"train.epochs=1"}), here()), second(run_words({"train.epochs=1"}), here());
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  int runs = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_ / "runs/trial")) ++runs;
  EXPECT_EQ(runs, 2);
}

TEST_F(Runs, RunsGoToTheWorkingFolderUnlessTold) {
  const Finished finished =
      headroom({"run", "trial.toml", "--set", "train.epochs=1", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(fs::is_directory(run_folder("runs")));
}

}  // namespace
}  // namespace headroom
