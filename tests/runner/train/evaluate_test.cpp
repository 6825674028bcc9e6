#include "train/evaluate.hpp"

#include "retry_of.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

// 50 samples in batches of 8, the last of 2.
struct Evaluation {
  Evaluation()
      : trial({"train.precision=fp64", "data.options.group_size=1"}),
        loader(trial->data.source, trial->data.splits.val, Normalizer(),
               trial->data.loader_options(/*training=*/false, trial->built_bytes)) {}
  std::optional<StepSums> run(
      Retry& retry, const std::function<bool(int64_t)>& stop = [](int64_t) { return false; }) {
    return evaluate(*trial, loader, 0, retry, stop);
  }
  double loss(int64_t micro_batch) {
    Retry retry = retry_of({micro_batch, /*adapts=*/true});
    return run(retry)->loss();
  }
  TrialSetup trial;
  Loader loader;
};

TEST(Evaluate, TheLossIsThatOfAllSamplesInAnyPieces) {
  Evaluation evaluation;
  const double whole = evaluation.loss(8);
  EXPECT_GT(whole, 0);
  for (const int64_t micro_batch : {1, 3, 7}) EXPECT_NEAR(evaluation.loss(micro_batch), whole, 1e-12 * whole);
}

TEST(Evaluate, CountsBatchesAndStopsBetweenThem) {
  Evaluation evaluation;
  Retry retry = retry_of({8, /*adapts=*/true});
  int64_t most = 0;
  ASSERT_TRUE(evaluation.run(retry, [&](int64_t done) {
    most = done;
    return false;
  }));
  EXPECT_EQ(most, 7);
  EXPECT_FALSE(evaluation.run(retry, [](int64_t done) { return done == 3; }));
}

TEST(Evaluate, SmallSamplesComeInLargerBatchesThanThoseOfTraining) {
  const auto at_once = [](const std::vector<std::string>& words) {
    TrialSetup trial(words);
    const int64_t batch_size = trial->loader_options(/*training=*/false).batch_size;
    EXPECT_EQ(trial->evaluation_micro_batch().size(), batch_size);
    EXPECT_EQ(trial->loader_options(/*training=*/true).batch_size, 8);
    return batch_size;
  };
  EXPECT_EQ(at_once({}), 64);
  EXPECT_EQ(at_once({"metrics={mode=\"sampled\"}"}), 8) << "the sample counts batches";
  EXPECT_EQ(at_once({"model.plugin=trial_generator_model", "model.options.randomness=sequential"}), 8)
      << "other pieces would be other draws";
  TrialSetup fixed({"train.micro_batch=2"});
  EXPECT_EQ(fixed->loader_options(/*training=*/false).batch_size, 8);
  EXPECT_EQ(fixed->evaluation_micro_batch().size(), 2) << "equal bits at any limit";
}

TEST(Evaluate, LargerBatchesMeasureTheSame) {
  Evaluation evaluation;
  Loader larger(evaluation.trial->data.source, evaluation.trial->data.splits.val, Normalizer(),
                evaluation.trial->loader_options(/*training=*/false));
  EXPECT_EQ(larger.batches_per_epoch(), 1u);
  const double expected = evaluation.loss(8);
  Retry retry = retry_of(evaluation.trial->evaluation_micro_batch());
  const auto sums = evaluate(*evaluation.trial, larger, 0, retry, [](int64_t) { return false; });
  EXPECT_NEAR(sums->loss(), expected, 1e-12 * expected);
}

TEST(Evaluate, BuildsNoGraph) {
  Evaluation evaluation;
  Retry retry = retry_of({8, /*adapts=*/true});
  ASSERT_TRUE(evaluation.run(retry, [](int64_t) {
    EXPECT_FALSE(at::GradMode::is_enabled());
    return false;
  }));
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(Evaluate, LeavesNoMicroBatchBehindWhereItIsStopped) {
  Evaluation evaluation;
  Retry retry = retry_of({8, /*adapts=*/true});
  const auto halve_and_stop = [&](int64_t done) {
    if (done == 2) retry.micro_batch().halve();
    return done == 3;
  };
  EXPECT_FALSE(evaluation.run(retry, halve_and_stop));
  EXPECT_EQ(retry.size(), 8);
}

TEST(Evaluate, WhatRunsOutOfMemoryIsRepeatedToTheSameBits) {
  install_tensor_allocator();
  Evaluation evaluation;
  const double expected = evaluation.loss(8);
  int64_t repeated = 0;
  for (int64_t at = 0; at < 60; at += 5) {
    Retry retry = retry_of({8, /*adapts=*/true});
    fail_tensor_allocation(at);
    EXPECT_EQ(evaluation.run(retry)->loss(), expected) << "allocation " << at;
    fail_tensor_allocation(-1);
    repeated += retry.counts().repeated;
  }
  EXPECT_GT(repeated, 3);
}

}  // namespace
}  // namespace headroom
