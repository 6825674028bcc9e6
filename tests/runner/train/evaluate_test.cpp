#include "train/evaluate.hpp"

#include "retry_of.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

// 50 samples in batches of 8, the last of 2.
struct Evaluation {
  Evaluation()
      : trial({"train.precision=fp64", "data.options.group_size=1"}),
        loader(trial->data.source, trial->data.splits.val, Normalizer(), trial->loader_options(false)) {}
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
