// train.precision: what is narrow under mixed precision, what is not, and how losses are scaled.
#include "train/precision.hpp"

#include "gradients.hpp"
#include "retry_of.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

// The first window, of 64 samples.
WindowResult window_of(const std::vector<std::string>& more, double loss_scale = 1.0) {
  std::vector<std::string> words = {"model.options.dropout=0.2", "train.batch_size=64"};
  words.insert(words.end(), more.begin(), more.end());
  TrialSetup trial(words);
  const auto normalizer = Normalizer::measure(*trial->data.source, trial->data.splits.train, "sampled", 32);
  Loader loader(trial->data.source, trial->data.splits.train, normalizer, trial->loader_options(true));
  Retry retry = retry_of(trial->micro_batch());
  Window window(*trial->model, trial->device, trial->dtype, retry);
  loader.seek(0);
  window.begin(loss_scale);
  EXPECT_TRUE(window.add(*loader.next(), 0));
  for (const Parameter& parameter : trial->model->parameters()) {
    const bool is_ours = parameter.kind != HR_PARAMETER || parameter.tensor->scalar_type() == trial->dtype;
    EXPECT_TRUE(is_ours) << parameter.name;
  }
  return take(window);
}

class MixedPrecision : public testing::TestWithParam<std::string> {};

TEST_P(MixedPrecision, ComputesNarrowAndKeepsParametersAndGradientsInFloat32) {
  const WindowResult exact = window_of({}), mixed = window_of({"train.precision=" + GetParam()});
  for (const at::Tensor& gradient : mixed.gradients) EXPECT_EQ(gradient.scalar_type(), at::kFloat);
  EXPECT_EQ(mixed.weight, exact.weight);
  EXPECT_NEAR(mixed.loss, exact.loss, 1e-2 * exact.loss);
  EXPECT_LT(difference(exact, mixed), 5e-2);
  EXPECT_GT(difference(exact, mixed), 1e-5);  // float32 would be closer
}

TEST_P(MixedPrecision, MicroBatchesGiveTheSameGradientUpToItsRounding) {
  const std::string precision = "train.precision=" + GetParam();
  EXPECT_LT(difference(window_of({precision}), window_of({precision, "train.micro_batch=3"})), 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Each, MixedPrecision, testing::Values("bf16", "fp16"),
                         [](const auto& param) { return param.param; });

TEST(LossScaling, TheLossIsScaledAndTheGradientIsNot) {
  const WindowResult plain = window_of({}), scaled = window_of({}, 4096.0);
  EXPECT_EQ(difference(plain, scaled), 0.0);
  EXPECT_EQ(plain.loss, scaled.loss);
}

// The smallest float16 is 6e-8.
TEST(LossScaling, AScaleSavesGradientsThatFloat16WouldLose) {
  const std::vector<std::string> half = {"train.precision=fp16", "model.options.loss_factor=1e-9"};
  const WindowResult exact = window_of({"model.options.loss_factor=1e-9"});
  EXPECT_GT(difference(exact, window_of(half)), 0.9);
  EXPECT_LT(difference(exact, window_of(half, 0x1p24)), 5e-2);
}

constexpr double kWeight = 1000.0;  // of a window: 2^16 / 1000 is between 2^6 and 2^7

TEST(LossScale, IsOneForeverWhereNothingScales) {
  LossScale scale(false);
  EXPECT_EQ(scale.factor(), 1.0);
  EXPECT_FALSE(scale.lower(kWeight));
  for (int i = 0; i < 5000; ++i) scale.succeeded();
  EXPECT_EQ(scale.factor(), 1.0);
  EXPECT_FALSE(scale.state());
}

TEST(LossScale, FallsFirstToWhatAMeanWouldBeginWith) {
  LossScale scale(true);
  EXPECT_EQ(scale.factor(), 0x1p16);
  EXPECT_TRUE(scale.lower(kWeight));
  EXPECT_EQ(scale.factor(), 0x1p6);
  scale.succeeded();
  EXPECT_TRUE(scale.lower(kWeight));  // of a later window
  EXPECT_EQ(scale.factor(), 0x1p5);
}

TEST(LossScale, FallsFasterWhileOneWindowOverflowsAgainAndAgain) {
  LossScale scale(true);
  for (const double factor : {0x1p6, 0x1p4, 0x1p0, 0x1p-8}) {
    EXPECT_TRUE(scale.lower(kWeight));
    EXPECT_EQ(scale.factor(), factor);
  }
}

TEST(LossScale, IsPutBackWhereNoFactorHelps) {
  LossScale scale(true);
  EXPECT_TRUE(scale.lower(kWeight));
  for (int i = 0; i < 10; ++i) scale.succeeded();
  int attempts = 1;
  while (scale.lower(kWeight)) ++attempts;
  EXPECT_LE(attempts, 6);  // a NaN that no factor explains costs little
  EXPECT_EQ(scale.factor(), 0x1p6);
  EXPECT_EQ(scale.state()->windows, 10);
  EXPECT_TRUE(scale.lower(kWeight));  // the next window is another one
  EXPECT_EQ(scale.factor(), 0x1p5);
}

TEST(LossScale, DoublesAfterTwoThousandWindows) {
  LossScale scale(true);
  scale.lower(kWeight);
  for (int i = 0; i < 1999; ++i) scale.succeeded();
  EXPECT_EQ(scale.factor(), 0x1p6);
  scale.succeeded();
  EXPECT_EQ(scale.factor(), 0x1p7);
  EXPECT_EQ(scale.state()->windows, 0);
}

TEST(LossScale, GoesOnFromAState) {
  LossScale before(true), after(true);
  before.lower(kWeight);
  for (int i = 0; i < 1500; ++i) before.succeeded();
  after.restore(before.state());
  for (int i = 0; i < 500; ++i) {
    before.succeeded();
    after.succeeded();
  }
  EXPECT_EQ(after.factor(), before.factor());
  EXPECT_EQ(after.factor(), 0x1p7);
}

}  // namespace
}  // namespace headroom
