// TrainingLoop::run() in this process: what it counts, where it stops, what it writes.
#include "train/loop.hpp"

#include <map>
#include <utility>

#include "trial_setup.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// 150 training samples in windows of 64: three steps an epoch, the last cut by the epoch's end.
struct LoopTrial {
  explicit LoopTrial(std::vector<std::string> words = {}, int epochs = 3)
      : trial([&] {
          words.insert(words.end(), {"data.options.group_size=1", "train.gradient_accumulation_steps=8",
                                     "train.epochs=" + std::to_string(epochs)});
          return words;
        }()),
        folder(RunFolder::create(trial.folder() / "runs", "trial")),
        log(folder),
        memory(trial->data.experiment, /*needed_bytes=*/0),
        loop(*trial, {trial->data.source, Normalizer(), Normalizer()}, folder, log, memory) {}

  at::Tensor weights() { return trial->model->parameters().front().tensor->clone(); }

  TrialSetup trial;
  RunFolder folder;
  RunLog log;
  RunMemory memory;
  TrainingLoop loop;
};

// A run that starts beside this one counts what is reserved.
TEST(RunMemory, ReservesWhatItsPlanSaysUntilAnEpochHasShownItsPeak) {
  const TrialSetup trial;
  constexpr int64_t planned = int64_t{1} << 30;
  RunMemory memory(trial.load({}), /*needed_bytes=*/0, planned);
  EXPECT_EQ(memory.reserved_bytes(), planned);
  memory.settle();
  EXPECT_EQ(memory.reserved_bytes(), planned) << "the first step has not been taken yet";
  memory.settle(/*epoch_done=*/true);
  EXPECT_LT(memory.reserved_bytes(), planned);
  memory.settle();
  EXPECT_LT(memory.reserved_bytes(), planned);
}

TEST(TrainingLoop, TakesEveryStepOfEveryEpoch) {
  LoopTrial run;
  EXPECT_EQ(run.loop.run(), Exit::ok);
  EXPECT_EQ(run.loop.position().step, 9);
  EXPECT_EQ(run.loop.position().epoch, 3);
  EXPECT_EQ(run.loop.position().samples, 0u);
  EXPECT_EQ(run.loop.position().skipped_windows, 0);
  EXPECT_TRUE(run.loop.position().has_best);
  EXPECT_TRUE(fs::exists(run.folder.path() / "checkpoints/last/model.safetensors"));
}

TEST(TrainingLoop, SaysInItsCheckpointsWhatItHasReserved) {
  LoopTrial run;
  ASSERT_EQ(run.loop.run(), Exit::ok);
  ASSERT_GT(run.memory.reserved_bytes(), 0);
  EXPECT_EQ(reserved_bytes_in(load_checkpoint(run.folder.path() / "checkpoints/last").json),
            run.memory.reserved_bytes());
  EXPECT_EQ(reserved_bytes_in({}), 0);
  EXPECT_EQ(reserved_bytes_in({{"position", {{"epoch", 3}}}}), 0) << "of an earlier build";
}

// Sees so many steps, and which phases they go through.
class CountingWatch : public StepWatch {
 public:
  explicit CountingWatch(int64_t enough) : enough_(enough) {}

  void begin_run(const Setup& setup) override { model = setup.model->id(); }
  void begin_step() override { EXPECT_FALSE(std::exchange(in_step_, true)); }
  bool end_step(const StepEnd& end) override {
    EXPECT_TRUE(std::exchange(in_step_, false));
    EXPECT_EQ(phase_, StepPhase::other) << "every phase has ended";
    samples.push_back(end.samples);
    EXPECT_GT(end.read.batches, 0u);
    EXPECT_EQ(end.micro_batch, 8);
    return static_cast<int64_t>(samples.size()) < enough_;
  }
  StepPhase enter(StepPhase phase) noexcept override {
    ++(in_step_ ? in_steps : between)[phase];
    return std::exchange(phase_, phase);
  }

  std::string model;
  std::vector<int64_t> samples;
  std::map<StepPhase, int> in_steps, between;

 private:
  const int64_t enough_;
  StepPhase phase_ = StepPhase::other;
  bool in_step_ = false;
};

TEST(TrainingLoop, EndsWhereItsWatchHasSeenEnough) {
  LoopTrial watched, stopped({"train.max_steps=4"});
  CountingWatch watch(4);
  watched.loop.watch_steps(&watch);
  EXPECT_EQ(watched.loop.run(), Exit::resumable);
  EXPECT_EQ(watched.loop.position().step, 4);
  EXPECT_EQ(watch.model, "trial_model");
  EXPECT_EQ(watch.samples, (std::vector<int64_t>{64, 64, 22, 64}));
  for (const StepPhase phase : {StepPhase::wait, StepPhase::copy, StepPhase::forward, StepPhase::backward}) {
    // 8 + 8 + 3 + 8 batches.
    EXPECT_GE(watch.in_steps[phase], 27) << static_cast<int>(phase);
  }
  EXPECT_GE(watch.in_steps[StepPhase::optimizer], 2 * 4) << "clipping and the step";
  EXPECT_GE(watch.in_steps[StepPhase::metrics], 4);
  EXPECT_EQ(watch.in_steps[StepPhase::checkpoint], 0);
  EXPECT_EQ(watch.between[StepPhase::checkpoint], 2) << "at the epoch's end and where it was stopped";
  EXPECT_EQ(watch_of_thread, nullptr);
  EXPECT_EQ(stopped.loop.run(), Exit::ok);
  EXPECT_TRUE(at::equal(watched.weights(), stopped.weights())) << "who watches changes nothing";
}

TEST(TrainingLoop, EndsInMidEpochAtMaxSteps) {
  LoopTrial run({"train.max_steps=4"});
  EXPECT_EQ(run.loop.run(), Exit::ok);
  EXPECT_EQ(run.loop.position().step, 4);
  EXPECT_EQ(run.loop.position().epoch, 1);
  EXPECT_EQ(run.loop.position().samples, 64u);
}

// Killed between the checkpoint of its last step and the evaluation of that.
TEST(TrainingLoop, EvaluatesWhatItsLastStepMadeThoughItWasStoppedBeforeThat) {
  LoopTrial whole({"train.max_steps=4"}),
      longer({"train.max_steps=5", "checkpoint.every_steps=4", "checkpoint.keep=9"}), again({"train.max_steps=4"});
  ASSERT_EQ(whole.loop.run(), Exit::ok);
  ASSERT_EQ(longer.loop.run(), Exit::ok);
  again.loop.resume(load_checkpoint(longer.folder.path() / "checkpoints/step-00000004"));
  EXPECT_EQ(again.loop.run(), Exit::ok);
  EXPECT_EQ(again.loop.position().step, 4);
  EXPECT_EQ(again.loop.position().best_step, whole.loop.position().best_step);
  EXPECT_EQ(again.loop.position().best, whole.loop.position().best);
}

TEST(TrainingLoop, GoesOnWhereItStoppedToTheSameBits) {
  LoopTrial whole;
  ASSERT_EQ(whole.loop.run(), Exit::ok);
  LoopTrial parts;
  parts.loop.stop_after(1);
  EXPECT_EQ(parts.loop.run(), Exit::resumable);
  EXPECT_EQ(parts.loop.position().epoch, 1);
  parts.loop.stop_after(0);
  EXPECT_EQ(parts.loop.run(), Exit::ok);
  EXPECT_EQ(parts.loop.position().step, whole.loop.position().step);
  EXPECT_TRUE(at::equal(parts.weights(), whole.weights()));
}

// The patience says when a run ends, as train.epochs does.
TEST(TrainingLoop, MorePatienceGoesOnWhereLessStopped) {
  const std::string early = "train.early_stop={min_delta=1000.0, patience=";
  LoopTrial stopped({early + "1}"}), patient({early + "2}"}), as_before({early + "1}"}), without;
  ASSERT_EQ(stopped.loop.run(), Exit::ok);
  ASSERT_TRUE(stopped.loop.position().stopped_early);
  ASSERT_EQ(stopped.loop.position().epoch, 2);
  const auto goes_on_to = [&](LoopTrial& run) {
    run.loop.resume(load_checkpoint(stopped.folder.path() / "checkpoints/last"));
    EXPECT_EQ(run.loop.run(), Exit::ok);
    return run.loop.position().epoch;
  };
  EXPECT_EQ(goes_on_to(patient), 3);
  EXPECT_EQ(goes_on_to(without), 3);
  EXPECT_EQ(goes_on_to(as_before), 2);
}

// No change counts as improvement, so the first evaluation stays the best.
const std::vector<std::string> on_a_plateau = {
    "train.schedule={name=\"plateau\", plateau_factor=0.5, plateau_patience=2}",
    "train.early_stop={min_delta=1000.0, patience=100}", "train.log_every=1"};

TEST(TrainingLoop, SaysWhatWasTooLittleToGoOnFor) {
  LoopTrial run({"train.schedule={name=\"plateau\", plateau_patience=1}", "train.optimizer.lr=0.01",
                 "train.early_stop={min_delta=1000.0, patience=2}"},
                /*epochs=*/6);
  testing::internal::CaptureStderr();
  const Exit exit = run.loop.run();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(exit, Exit::ok) << said;
  for (const char* line : {"val/loss has not improved by more than 1000 for 1 evaluation: the learning rate was 0.01",
                           "early stop: val/loss has not improved by more than 1000 for 2 evaluations\n"})
    EXPECT_NE(said.find(line), std::string::npos) << said;
}

// The learning rate of each step, as metrics.csv has it.
std::vector<double> rates_of(const LoopTrial& run) {
  std::vector<double> rates;
  std::ifstream csv(run.folder.path() / "metrics.csv");
  for (std::string line; std::getline(csv, line);) {
    const size_t at = line.find(",train,lr,");
    if (at != std::string::npos) rates.push_back(std::stod(line.substr(at + std::string(",train,lr,").size())));
  }
  return rates;
}

TEST(TrainingLoop, PlateauDropsTheRateWhereTheMetricHasNotImproved) {
  std::vector<std::string> words = on_a_plateau;
  words.emplace_back("train.optimizer.lr=0.01");
  LoopTrial run(words, /*epochs=*/6);
  ASSERT_EQ(run.loop.run(), Exit::ok);
  // The best after epoch 1, and two evaluations without improvement after 3 and 5.
  std::vector<double> expected(9, 0.01);
  expected.insert(expected.end(), 6, 0.005);
  expected.insert(expected.end(), 3, 0.0025);
  EXPECT_EQ(rates_of(run), expected);
  EXPECT_EQ(run.loop.position().plateau_drops, 2);
  EXPECT_EQ(run.loop.position().plateau_stale, 1);
}

TEST(TrainingLoop, PlateauWaitsForTheEndOfWarmUp) {
  LoopTrial run({"train.schedule={name=\"plateau\", plateau_factor=0.5, plateau_patience=1, warmup_epochs=3}",
                 "train.early_stop={min_delta=1000.0, patience=100}", "train.log_every=1", "train.optimizer.lr=0.01"},
                /*epochs=*/6);
  ASSERT_EQ(run.loop.run(), Exit::ok);
  const std::vector<double> rates = rates_of(run),
                            expected = {0.01, 0.01, 0.01, 0.005, 0.005, 0.005, 0.0025, 0.0025, 0.0025};
  ASSERT_EQ(rates.size(), 18u);
  EXPECT_EQ(std::vector(rates.begin() + 9, rates.end()), expected);
}

TEST(TrainingLoop, GoesOnOnAPlateauToTheSameBits) {
  LoopTrial whole(on_a_plateau, /*epochs=*/6), begun(on_a_plateau, /*epochs=*/6), resumed(on_a_plateau, /*epochs=*/6);
  ASSERT_EQ(whole.loop.run(), Exit::ok);
  begun.loop.stop_after(4);  // one drop behind it, and one evaluation without improvement
  ASSERT_EQ(begun.loop.run(), Exit::resumable);
  resumed.loop.resume(load_checkpoint(begun.folder.path() / "checkpoints/last"));
  EXPECT_EQ(resumed.loop.position().plateau_drops, 1);
  EXPECT_EQ(resumed.loop.position().plateau_stale, 1);
  ASSERT_EQ(resumed.loop.run(), Exit::ok);
  EXPECT_EQ(resumed.loop.position().plateau_drops, 2);
  EXPECT_TRUE(at::equal(resumed.weights(), whole.weights()));
}

TEST(TrainingLoop, AnotherMetricIsNotComparedWithTheBestOfTheOldOne) {
  LoopTrial by_loss, by_closeness({"experiment.metric=val/closeness"}), higher({"experiment.better=higher"}), as_before;
  by_loss.loop.stop_after(2);
  ASSERT_EQ(by_loss.loop.run(), Exit::resumable);
  const Position& before = by_loss.loop.position();
  ASSERT_TRUE(before.has_best);
  const auto resume = [&](LoopTrial& run) {
    run.loop.resume(load_checkpoint(by_loss.folder.path() / "checkpoints/last"));
    EXPECT_EQ(run.loop.position().best_step, before.best_step);
    return run.loop.position().has_best;
  };
  EXPECT_FALSE(resume(by_closeness));
  EXPECT_FALSE(resume(higher));
  EXPECT_TRUE(resume(as_before));
  EXPECT_EQ(as_before.loop.position().best, before.best);
  // Never above 0, where a loss never is below it.
  ASSERT_EQ(by_closeness.loop.run(), Exit::ok);
  EXPECT_EQ(by_closeness.loop.position().best_step, 9);
  EXPECT_LT(by_closeness.loop.position().best, 0.0);
}

// Killed between a checkpoint and its link: the position knows the best, the link is still that of an earlier one.
TEST(TrainingLoop, ALinkToTheBestThatACrashLeftBehindIsMended) {
  LoopTrial whole({"checkpoint.keep=9"}), again({"checkpoint.keep=9"});
  ASSERT_EQ(whole.loop.run(), Exit::ok);
  const fs::path checkpoints = again.folder.path() / "checkpoints";
  fs::copy(whole.folder.path() / "checkpoints", checkpoints,
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const fs::path best = fs::read_symlink(checkpoints / "best");
  fs::remove(checkpoints / "best");
  fs::create_symlink(best == "step-00000003" ? "step-00000006" : "step-00000003", checkpoints / "best");
  again.loop.resume(load_checkpoint(checkpoints / "last"));
  EXPECT_EQ(fs::read_symlink(checkpoints / "best"), best);
}

at::Tensor buffer_of(LoopTrial& run, const std::string& name) {
  for (const Parameter& parameter : run.trial->model->parameters()) {
    if (parameter.name == name) return parameter.tensor->clone();
  }
  return {};
}

// What forward does to a buffer, as BatchNorm to its running mean, would outlast the window.
TEST(TrainingLoop, AWindowThatIsLeftOutLeavesNothingInBuffers) {
  // Three windows of 64 an epoch, of which the bad sample spoils one.
  const std::string samples = "data.options.samples=256";
  const uint64_t bad = TrialSetup({samples, "data.options.group_size=1"})->data.splits.train.source_index(0);
  LoopTrial run({samples, "data.options.nan_at=[" + std::to_string(bad) + "]", "train.on_nonfinite=skip"});
  ASSERT_EQ(run.trial->data.splits.train.length(), 192u);
  EXPECT_EQ(run.loop.run(), Exit::ok);
  EXPECT_EQ(run.loop.position().skipped_windows, 3);
  EXPECT_EQ(run.loop.position().step, 6);
  // The model counts there the samples that it was trained on.
  EXPECT_EQ(buffer_of(run, "seen").item<double>(), 6.0 * 64);
}

// Reading the window again only explains what happened.
TEST(TrainingLoop, WhereThereIsNoMemoryToLookForABadValueTheRunGoesOn) {
  const std::string samples = "data.options.samples=256";
  const uint64_t bad = TrialSetup({samples, "data.options.group_size=1"})->data.splits.train.source_index(0);
  const std::string at = "[" + std::to_string(bad) + "]";
  LoopTrial run({samples, "data.options.nan_at=" + at, "data.options.once_at=" + at, "train.on_nonfinite=skip"});
  run.loop.stop_after(1);
  EXPECT_EQ(run.loop.run(), Exit::resumable);
  EXPECT_EQ(run.loop.position().skipped_windows, 1);
  EXPECT_EQ(run.loop.position().step, 2);
  EXPECT_EQ(run.loop.position().micro_batch, 8) << "it says nothing about training";
  EXPECT_EQ(buffer_of(run, "seen").item<double>(), 2.0 * 64);
}

// The plan of a run asks the same rule, with what its probe held.
TEST(RunLoaders, TakeLittleBesideTheRunWhileTheDiskIsWaitedFor) {
  TrialSetup trial;
  EXPECT_GT(trial->built_bytes, 8 << 20) << "LibTorch alone is more";
  for (const bool training : {true, false}) {
    EXPECT_EQ(trial->loader_options(training).disk_ahead_bytes, disk_ahead_bytes(trial->built_bytes, training));
  }
}

}  // namespace
}  // namespace headroom
