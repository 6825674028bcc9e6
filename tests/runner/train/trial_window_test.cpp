// One window's gradients do not depend on how it is split: by the loader's own path, with keyed dropout and a ragged
// mask. Each promise stands beside the mistake that breaks it, so that the tests are known to see it.
#include "gradients.hpp"
#include "retry_of.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

// All windows of the first epoch of 150 samples: 64, 64 and a last one of 22 that the epoch's end cuts.
std::vector<WindowResult> windows(int batch_size, int steps, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"data.options.samples=200", "data.options.group_size=1",
                                    "model.options.dropout=0.2", "train.batch_size=" + std::to_string(batch_size),
                                    "train.gradient_accumulation_steps=" + std::to_string(steps)};
  words.insert(words.end(), more.begin(), more.end());
  TrialSetup trial(words);
  EXPECT_EQ(trial->data.samples_per_epoch(), 150u);
  const auto normalizer = Normalizer::measure(*trial->data.source, trial->data.splits.train, "sampled", 32);
  Loader loader(trial->data.source, trial->data.splits.train, normalizer, trial->loader_options(true));
  Retry retry = retry_of(trial->micro_batch());
  Window window(*trial->model, trial->device, trial->dtype, retry);
  loader.seek(0);
  std::vector<WindowResult> results;
  for (int64_t i = 0; i < trial->data.windows_per_epoch(); ++i) {
    window.begin();
    for (int64_t batch = 0; batch < steps; ++batch) {
      const auto read = loader.next();
      if (!read) break;
      EXPECT_TRUE(window.add(*read, i));
    }
    results.push_back(take(window));
  }
  return results;
}

const std::vector<std::string> kDouble = {"train.precision=fp64"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(TrialWindow, HasAWindowThatTheEpochsEndCuts) {
  const auto results = windows(64, 1, kDouble);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_GT(results[0].weight, 2.0 * results[2].weight);
  EXPECT_GT(results[2].weight, 0.0);
}

TEST(TrialWindow, SixtyFourSamplesInAnyBatchesGiveOneGradientInFloat64) {
  const auto whole = windows(64, 1, kDouble);
  EXPECT_LT(difference(whole, windows(16, 4, kDouble)), 1e-12);
  EXPECT_LT(difference(whole, windows(8, 8, kDouble)), 1e-12);
}

TEST(TrialWindow, SixtyFourSamplesInAnyBatchesGiveOneGradientInFloat32) {
  const auto whole = windows(64, 1);
  EXPECT_LT(difference(whole, windows(16, 4)), 1e-5);
  EXPECT_LT(difference(whole, windows(8, 8)), 1e-5);
}

TEST(TrialWindow, MicroBatchesGiveTheSameGradientRaggedOnesToo) {
  const auto whole = windows(64, 1, kDouble);
  EXPECT_LT(difference(whole, windows(64, 1, with(kDouble, {"train.micro_batch=8"}))), 1e-12);
  EXPECT_LT(difference(whole, windows(64, 1, with(kDouble, {"train.micro_batch=3"}))), 1e-12);
  EXPECT_LT(difference(whole, windows(16, 4, with(kDouble, {"train.micro_batch=5"}))), 1e-12);
}

TEST(TrialWindow, LossAndWeightArePooledOverTheWindow) {
  const auto whole = windows(64, 1, kDouble), split = windows(8, 8, kDouble);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].weight, split[i].weight);
    EXPECT_NEAR(whole[i].loss, split[i].loss, 1e-12 * whole[i].loss);
  }
}

TEST(TrialWindow, ReaderThreadsChangeNothing) {
  EXPECT_EQ(difference(windows(8, 8), windows(8, 8, {"data.num_workers=3"})), 0.0);
}

// The mistakes.

TEST(TrialWindowMistake, DividingPerMicroBatchShowsWhereTheMaskIsRagged) {
  const std::vector<std::string> mistake = with(kDouble, {"model.options.loss=mean"});
  EXPECT_GT(difference(windows(64, 1, mistake), windows(16, 4, mistake)), 1e-3);
  EXPECT_GT(difference(windows(64, 1, mistake), windows(64, 1, with(mistake, {"train.micro_batch=8"}))), 1e-3);
}

TEST(TrialWindowMistake, SequentialRandomnessShowsInAnyOtherSplit) {
  const std::vector<std::string> mistake = with(kDouble, {"model.options.randomness=sequential"});
  EXPECT_EQ(difference(windows(64, 1, mistake), windows(64, 1, mistake)), 0.0);  // the same split repeats
  EXPECT_GT(difference(windows(64, 1, mistake), windows(16, 4, mistake)), 1e-3);
  EXPECT_GT(difference(windows(64, 1, mistake), windows(64, 1, with(mistake, {"train.micro_batch=8"}))), 1e-3);
}

TEST(TrialWindowMistake, DropoutReallyDropsSomething) {
  EXPECT_GT(difference(windows(64, 1, kDouble), windows(64, 1, with(kDouble, {"model.options.dropout=0.0"}))), 1e-3);
}

// Other promises of Window.

TEST(Window, AllMaskedHasWeightZeroAndGradientsOfZero) {
  std::string masked = "data.options.masked=[";
  for (int i = 0; i < 200; ++i) masked += std::to_string(i) + ",";
  const auto results = windows(64, 1, {masked + "]"});
  EXPECT_EQ(results[0].weight, 0.0);
  EXPECT_TRUE(std::isnan(results[0].loss));
  for (const at::Tensor& gradient : results[0].gradients) EXPECT_EQ(gradient.abs().max().item<double>(), 0.0);
}

TEST(Window, FrozenParametersGetNoGradientUntilTheyThaw) {
  TrialSetup trial({"model.options.freeze_until=5"});
  Loader loader(trial->data.source, trial->data.splits.train, {}, trial->loader_options(true));
  Retry retry = retry_of(trial->micro_batch());
  Window window(*trial->model, trial->device, trial->dtype, retry);
  loader.seek(0);
  const auto has_gradient_at = [&](int64_t step) {
    window.thaw(step);
    window.begin();
    EXPECT_TRUE(window.add(*loader.next(), step));
    window.divide();
    return trial->model->parameters().front().tensor->grad().defined();  // hidden.weight
  };
  EXPECT_FALSE(has_gradient_at(0));
  EXPECT_FALSE(has_gradient_at(4));
  EXPECT_TRUE(has_gradient_at(5));
}

TEST(Window, AddsIntoTheSameMemoryWindowAfterWindow) {
  TrialSetup trial;
  Loader loader(trial->data.source, trial->data.splits.train, {}, trial->loader_options(true));
  Retry retry = retry_of(trial->micro_batch());
  Window window(*trial->model, trial->device, trial->dtype, retry);
  EXPECT_TRUE(window.gradients().empty()) << "none has been reached";
  const void* memory = nullptr;
  loader.seek(0);
  for (int i = 0; i < 3; ++i) {
    window.begin();
    EXPECT_TRUE(window.add(*loader.next(), i));
    window.divide();
    const void* now = trial->model->parameters().front().tensor->grad().const_data_ptr();
    EXPECT_TRUE(i == 0 || now == memory);
    memory = now;
  }
}

}  // namespace
}  // namespace headroom
