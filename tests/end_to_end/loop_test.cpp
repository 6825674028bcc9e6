// What the keys of [train], [eval] and [checkpoint] do to a run, seen from outside.
#include <sstream>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Loop : public TrialRun {
 protected:
  // A short run with these keys; its summary.
  nlohmann::json summary_of(std::vector<std::string> set, const std::string& out = "runs") {
    const Finished finished = run(set, out);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return read_json(run_folder(out) / "summary.json");
  }
  std::vector<std::string> checkpoints() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run_folder() / "checkpoints")) {
      if (!entry.is_symlink()) names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // "step,epoch" of every row of metrics.csv about `metric` ("val,loss").
  std::vector<std::string> rows_with(const std::string& metric) {
    std::vector<std::string> rows;
    std::istringstream csv(metrics_without_times(run_folder()));
    for (std::string line; std::getline(csv, line);) {
      const size_t at = line.find("," + metric + ",");
      if (at != std::string::npos) rows.push_back(line.substr(0, at));
    }
    return rows;
  }
  std::string model_of(const std::string& out) {
    return read_text(run_folder(out) / "checkpoints/last/model.safetensors");
  }
};

TEST_F(Loop, StopsEarlyWhenNothingImproves) {
  // No change counts as improvement: after the first evaluation two more are waited for.
  const auto summary = summary_of({"train.epochs=9", "train.early_stop={patience=2, min_delta=1000.0}"});
  EXPECT_EQ(summary.at("state"), "stopped_early");
  EXPECT_EQ(summary.at("epochs"), 3);
}

// train.early_stop says when a run ends, and not which of its weights are the best.
TEST_F(Loop, TheBestIsTheBestThoughItIsNoImprovement) {
  const auto plain = summary_of({}, "plain"), early = summary_of({"train.early_stop={patience=9, min_delta=1000.0}"});
  EXPECT_GT(plain.at("best").at("epoch"), 1);
  EXPECT_EQ(early.at("best"), plain.at("best"));
}

TEST_F(Loop, TheBestIsWhatTheMetricSays) {
  const auto summary = summary_of({"experiment.metric=val/closeness"});  // higher is better
  double best = -1e300;
  std::istringstream csv(metrics_without_times(run_folder()));
  for (std::string line; std::getline(csv, line);) {
    if (line.find(",val,closeness,") != std::string::npos)
      best = std::max(best, std::stod(line.substr(line.rfind(',') + 1)));
  }
  EXPECT_EQ(summary.at("best").at("metric"), "val/closeness");
  EXPECT_EQ(summary.at("best").at("value"), best);
}

TEST_F(Loop, DropsARaggedLastWindowOnRequest) {
  EXPECT_EQ(summary_of({"train.epochs=1", "train.batch_size=16"}).at("steps"), 4);  // 120 = 3 x 32 + 24
  EXPECT_EQ(summary_of({"train.epochs=1", "train.batch_size=16", "train.drop_last=true"}, "dropped").at("steps"), 3);
}

TEST_F(Loop, EndsAtMaxStepsInMidEpochWithAnEvaluation) {
  const auto summary = summary_of({"train.max_steps=7"});
  EXPECT_EQ(summary.at("steps"), 7);
  EXPECT_EQ(summary.at("epochs"), 0);
  EXPECT_TRUE(summary.at("metrics").contains("val/loss"));
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"step-00000007"}));
}

TEST_F(Loop, TheScheduleEndsWhereTheRunDoes) {
  summary_of({"train.epochs=1", "train.max_steps=1000", "train.schedule.name=linear", "train.schedule.warmup_steps=0"});
  const std::string csv = metrics_without_times(run_folder());
  const size_t row = csv.find("12,1,train,lr,");  // of the twelfth step, 11 of 15 behind it
  ASSERT_NE(row, std::string::npos) << csv;
  EXPECT_NEAR(std::stod(csv.substr(row + 14)), 0.01 * (1.0 - 11.0 / 15.0), 1e-12);
}

// A curve of train/loss has one point an epoch, beside val/loss; the steps' own curve is train/loss_step.
TEST_F(Loop, RowsOfStepsAndOfEpochsAreToldApart) {
  summary_of({"train.epochs=2", "train.log_every=6"});
  EXPECT_EQ(rows_with("train,loss_step"), (std::vector<std::string>{"6,1", "12,1", "18,2", "24,2", "30,2"}));
  EXPECT_EQ(rows_with("train,loss"), (std::vector<std::string>{"15,1", "30,2"}));
  EXPECT_EQ(rows_with("val,loss"), (std::vector<std::string>{"15,1", "30,2"}));
}

TEST_F(Loop, TellsWhichGroupsTrainAndValidate) {
  summary_of({"train.epochs=1"});
  const auto splits = read_json(run_folder() / "splits.json");
  EXPECT_EQ(splits.at("format"), 1);
  for (const auto& [split, samples] : {std::pair("train", 120), std::pair("val", 40)}) {
    EXPECT_EQ(splits.at(split).at("samples"), samples);
    EXPECT_EQ(splits.at(split).at("names").size(), splits.at(split).at("groups"));
    EXPECT_TRUE(splits.at(split).at("names")[0].get<std::string>().starts_with("group"));
  }
}

TEST_F(Loop, EvaluatesEverySoManyEpochsAndAtTheEnd) {
  summary_of({"train.epochs=4", "eval.every_epochs=3"});
  EXPECT_EQ(rows_with("val,loss"), (std::vector<std::string>{"45,3", "60,4"}));
  EXPECT_EQ(rows_with("train,mae"), (std::vector<std::string>{"15,1", "30,2", "45,3", "60,4"}));
}

TEST_F(Loop, KeepsTheNewestCheckpointsAndTheBest) {
  summary_of({"train.epochs=2", "checkpoint.every_steps=4", "checkpoint.keep=3", "experiment.better=higher",
              "experiment.metric=val/mae"});
  const auto best = fs::read_symlink(run_folder() / "checkpoints/best").string();
  auto expected = std::vector<std::string>{"step-00000024", "step-00000028", "step-00000030"};
  if (best != "step-00000030") expected.insert(expected.begin(), best);
  EXPECT_EQ(checkpoints(), expected);
  EXPECT_EQ(fs::read_symlink(run_folder() / "checkpoints/last"), "step-00000030");
}

TEST_F(Loop, DivergedRunsStopWithTheCheckpointsTheyHave) {
  const Finished finished = run({"train.optimizer={name=\"sgd\",lr=1e30}", "train.schedule={name=\"constant\"}",
                                 "checkpoint.every_steps=1", "checkpoint.keep=100"});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_NE(finished.err.find(" and the gradient norm "), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find(": lower train.optimizer.lr"), std::string::npos) << finished.err;
  const auto summary = read_json(run_folder() / "summary.json");
  EXPECT_EQ(summary.at("state"), "failed");
  const auto end = read_json_lines(run_folder() / "events.jsonl").back();
  EXPECT_EQ(end.at("kind"), "end");
  EXPECT_EQ(end.at("exit_code"), 7);
}

TEST_F(Loop, ANumberThatIsNoneInASampleIsNamed) {
  // Every sample of the training split comes once an epoch: sample 0 is in it, or in validation.
  const std::string bad = "data.options.nan_at=[0,20,40,60,80,100]";
  const Finished finished = run({bad}, "failed");
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_NE(finished.err.find("the loss is nan and the gradient norm "), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find(": field 'y' holds nan at [0], in sample "), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("0 of split 'train', group 'group"), std::string::npos) << finished.err;
  const auto summary = summary_of({bad, "data.on_bad_sample=skip_not_finite", "train.epochs=1"});
  EXPECT_EQ(summary.at("steps"), 15) << "the windows are shorter by the bad samples";
  EXPECT_GT(summary.at("bad_samples"), 0);
  EXPECT_TRUE(std::isfinite(summary.at("metrics").at("val/loss").get<double>()));
}

TEST_F(Loop, SkippedWindowsNeverEnterTheOptimizer) {
  const auto summary =
      summary_of({"data.options.nan_at=[0,20,40,60,80,100]", "train.on_nonfinite=skip", "train.epochs=2"});
  const int64_t skipped = summary.at("skipped_windows");
  EXPECT_GT(skipped, 0);
  EXPECT_EQ(summary.at("steps").get<int64_t>() + skipped, 30);
  EXPECT_TRUE(std::isfinite(summary.at("metrics").at("train/loss").get<double>()));
  EXPECT_EQ(model_of("runs").find("nan"), std::string::npos);
}

// "NAME=[0,1,...]" of the first samples.
std::string first_samples(const std::string& name, int count) {
  std::string list = name + "=[";
  for (int i = 0; i < count; ++i) list += std::to_string(i) + ",";
  return list + "]";
}

TEST_F(Loop, ANumberThatIsNoneInValidationIsNeverTheBest) {
  const Finished finished = run({first_samples("data.options.nan_at", 80), "train.batch_size=1",
                                 "train.gradient_accumulation_steps=1", "train.on_nonfinite=skip", "train.epochs=1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto summary = read_json(run_folder() / "summary.json");
  EXPECT_GT(summary.at("steps"), 0);
  EXPECT_TRUE(summary.at("best").is_null());
  EXPECT_NE(finished.err.find("val/loss is nan after epoch 1: such an epoch is never the best"), std::string::npos)
      << finished.err;
  EXPECT_FALSE(fs::exists(run_folder() / "checkpoints/best"));
  EXPECT_TRUE(fs::exists(run_folder() / "checkpoints/last"));
}

TEST_F(Loop, WindowsWhereNothingCountsAreSkipped) {
  const auto summary = summary_of({first_samples("data.options.masked", 80), "train.batch_size=1",
                                   "train.gradient_accumulation_steps=1", "train.epochs=1"});
  const int64_t skipped = summary.at("skipped_windows");
  EXPECT_GT(skipped, 0);
  EXPECT_GT(summary.at("steps"), 0);
  EXPECT_EQ(summary.at("steps").get<int64_t>() + skipped, 120);
}

TEST_F(Loop, ARunThatTakesNoStepIsNoSuccess) {
  const Finished masked = run({first_samples("data.options.masked", 160)}, "masked");
  EXPECT_EQ(masked.exit_code, 4) << masked.err;
  EXPECT_NE(masked.err.find("epoch 2 ended and no optimizer step has been taken: the model's weight was 0"),
            std::string::npos)
      << masked.err;
  const Finished not_finite =
      run({first_samples("data.options.nan_at", 160), "train.on_nonfinite=skip", "train.epochs=1"}, "nan");
  EXPECT_EQ(not_finite.exit_code, 7) << not_finite.err;
}

TEST_F(Loop, ParametersThatNoGradientReachesAreNamed) {
  const Finished finished = run({"model.options.mistake=cut", "train.epochs=1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("no gradient has reached hidden.weight"), std::string::npos) << finished.err;
}

TEST_F(Loop, BadSamplesEndTheRunOrAreSkippedAndCounted) {
  const Finished failed = run({"data.options.broken_at=[3,77,130]", "data.normalize=off"}, "failed");
  EXPECT_EQ(failed.exit_code, 4) << failed.err;
  EXPECT_NE(failed.err.find("[trial_source] "), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("is damaged"), std::string::npos) << failed.err;
  const auto summary = summary_of(
      {"data.options.broken_at=[3,77,130]", "data.normalize=off", "data.on_bad_sample=skip", "train.epochs=1"});
  EXPECT_GT(summary.at("bad_samples"), 0);
  EXPECT_LE(summary.at("bad_samples"), 3);
  EXPECT_EQ(summary.at("steps"), 15);
}

TEST_F(Loop, EveryOptimizerAndPrecisionLearns) {
  const std::vector<std::vector<std::string>> variants = {
      {"train.optimizer={name=\"sgd\",lr=0.05,momentum=0.9,nesterov=true}"},
      {"train.optimizer={name=\"adam\",lr=0.01}"},
      {"train.precision=fp64"}};
  for (size_t i = 0; i < variants.size(); ++i) {
    auto set = variants[i];
    set.insert(set.end(), {"train.epochs=4", "model.options.dropout=0.0", "model.options.remember=false"});
    summary_of(set, "out" + std::to_string(i));
    std::vector<double> losses;
    std::istringstream csv(metrics_without_times(run_folder("out" + std::to_string(i))));
    for (std::string line; std::getline(csv, line);) {
      if (line.find(",val,loss,") != std::string::npos) losses.push_back(std::stod(line.substr(line.rfind(',') + 1)));
    }
    ASSERT_EQ(losses.size(), 4u);
    EXPECT_LT(losses.back(), 0.8 * losses.front()) << variants[i].front();
  }
  EXPECT_NE(model_of("out2").find("\"F64\""), std::string::npos);
}

TEST_F(Loop, AccumulationDoesNotChangeWhatIsLearnedBeyondRounding) {
  const std::vector<std::string> common = {"train.precision=fp64", "train.epochs=1", "model.options.remember=false",
                                           "train.optimizer={name=\"sgd\",lr=0.05}"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  const double whole = summary_of(with({"train.batch_size=32", "train.gradient_accumulation_steps=1"}), "whole")
                           .at("metrics")
                           .at("val/loss");
  const double split = summary_of(with({"train.batch_size=4", "train.gradient_accumulation_steps=8"}), "split")
                           .at("metrics")
                           .at("val/loss");
  const double micro =
      summary_of(with({"train.batch_size=32", "train.gradient_accumulation_steps=1", "train.micro_batch=5"}), "micro")
          .at("metrics")
          .at("val/loss");
  EXPECT_NEAR(whole, split, 1e-12);
  EXPECT_NEAR(whole, micro, 1e-12);
}

TEST_F(Loop, WithoutValidationTheTrainingLossDecides) {
  const Finished finished = run({"data.split={train=1.0,val=0.0,test=0.0}", "train.epochs=1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("no validation split: experiment.metric is train/loss"), std::string::npos);
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("best").at("metric"), "train/loss");
}

TEST_F(Loop, WeightsFromAnotherRunAreWhereTrainingStarts) {
  summary_of({"train.epochs=1"}, "first");
  const fs::path from = run_folder("first") / "checkpoints/last";
  const Finished finished = run({"init.from=" + from.string(), "train.epochs=1",
                                 "train.optimizer={name=\"sgd\",lr=1e-30}", "train.ema.decay=0.0"},
                                "second");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("init: 5 tensors from " + (from / "model.safetensors").string()), std::string::npos)
      << finished.err;
}

TEST_F(Loop, WeightsARunStartedFromMayBeGoneWhenItGoesOn) {
  summary_of({"train.epochs=1"}, "first");
  const std::string from = "init.from=" + (run_folder("first") / "checkpoints/last").string();
  const auto stopped = summary_of({from, "train.epochs=1", "train.max_steps=4"}, "second");
  fs::remove_all(folder_ / "first");
  const Finished resumed =
      headroom({"run", "--resume", run_folder("second").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("bit-equal"), std::string::npos) << resumed.err;
  EXPECT_EQ(read_json(run_folder("second") / "summary.json").at("identity"), stopped.at("identity"));
}

}  // namespace
}  // namespace headroom
