// The table, what fits, and what is recommended.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "probed.hpp"

namespace headroom {
namespace {

Experiment experiment_of(int64_t batch_size, int64_t accumulation, int64_t micro_batch = 0) {
  Experiment experiment;
  experiment.data.num_workers = 0;
  experiment.train.batch_size = batch_size;
  experiment.train.gradient_accumulation_steps = accumulation;
  experiment.train.micro_batch = micro_batch;
  return experiment;
}

Plan plan_of(const Experiment& experiment, int64_t limit_mib, const Probe& probe = straight_probe()) {
  MemoryLimit limit{std::nullopt, "a limit for a test"};
  if (limit_mib > 0) limit.bytes = limit_mib * mib;
  return make_plan(experiment, Fit(probe, readers(0, 1), experiment.metrics.mode == "full"), limit);
}

TEST(Plan, HasARowForEveryBatchAndMicroBatchThatKeepTheWindow) {
  const Plan plan = plan_of(experiment_of(8, 2), 0);
  EXPECT_EQ(plan.rows.size(), 5u + 4u + 3u + 2u + 1u);
  for (const PlanRow& row : plan.rows) {
    EXPECT_EQ(row.setting.batch_size * row.setting.accumulation, 16);
    EXPECT_LE(row.setting.micro_batch, row.setting.batch_size);
    EXPECT_TRUE(row.fits);
  }
}

TEST(Plan, CountsNoSlotForABatchThatDoesNotExist) {
  Probe probe = straight_probe();  // 1000 samples of 1 MiB to train on, 100 to validate with
  RunLoaders loaders = readers(4, 8);
  loaders.training.prefetch_bytes = loaders.evaluation.prefetch_bytes = 10'000 * mib;
  const Experiment experiment = experiment_of(100, 1);
  const auto slots = [&](int64_t epochs) {
    loaders.training.epochs = epochs;
    return make_plan(experiment, Fit(probe, loaders, false), {std::nullopt, ""}).as_written.prediction.slots_bytes;
  };
  EXPECT_EQ(slots(-1), (33 + 1) * 100 * mib);
  EXPECT_EQ(slots(2), (20 + 1) * 100 * mib);
  EXPECT_EQ(slots(1), (10 + 1) * 100 * mib);
}

TEST(Plan, CountsDecodedChunks) {
  Probe probe = straight_probe();
  const auto predicted = [&] {
    return make_plan(experiment_of(8, 1), Fit(probe, readers(2, 1), false), {std::nullopt, ""}).as_written.prediction;
  };
  const Prediction plain = predicted();
  probe.chunk_bytes = 30 * mib;  // all that is kept, and
  probe.largest_chunk_bytes = 4 * mib;
  const Prediction chunked = predicted();
  EXPECT_EQ(chunked.peak_bytes - plain.peak_bytes, 30 * mib);
  EXPECT_EQ(chunked.work_bytes - plain.work_bytes, 2 * 4 * mib) << "one that each reader decodes";
  EXPECT_EQ(chunked.least_bytes - plain.least_bytes, 2 * 4 * mib);
  probe.reader_bytes = mib;
  const Prediction decoding = predicted();
  EXPECT_EQ(decoding.peak_bytes - chunked.peak_bytes, 2 * 2 * mib) << "the readers of training and of evaluations";
  EXPECT_EQ(decoding.work_bytes - chunked.work_bytes, 2 * 2 * mib);
  EXPECT_EQ(decoding.least_bytes - chunked.least_bytes, mib) << "another one waits for it";
  probe.val_samples = 0;
  const int64_t without_evaluations = predicted().peak_bytes;
  probe.reader_bytes = 0;
  EXPECT_EQ(without_evaluations - predicted().peak_bytes, 2 * mib);
  probe.val_samples = 100;
  probe.chunk_bytes = mib;  // data.chunk_cache_size
  EXPECT_EQ(predicted().peak_bytes - plain.peak_bytes, 2 * 4 * mib);
}

TEST(Plan, CountsTheProcessesOfReaders) {
  Probe probe = straight_probe();
  const auto plan = [&] {
    return make_plan(experiment_of(8, 1), Fit(probe, readers(2, 1), false), {std::nullopt, ""});
  };
  const Prediction without = plan().as_written.prediction;
  EXPECT_EQ(plan().text(experiment_of(8, 1)).find("worker processes"), std::string::npos);
  probe.worker_bytes = 100 * mib;
  const Plan with = plan();
  const Prediction& prediction = with.as_written.prediction;
  EXPECT_EQ(prediction.workers_bytes, 2 * 2 * 100 * mib) << "training's and those of evaluations";
  EXPECT_EQ(prediction.peak_bytes - without.peak_bytes, prediction.workers_bytes);
  EXPECT_EQ(prediction.work_bytes - without.work_bytes, prediction.workers_bytes);
  EXPECT_EQ(prediction.least_bytes - without.least_bytes, prediction.workers_bytes) << "they stay when memory is short";
  EXPECT_NE(with.text(experiment_of(8, 1)).find("400.0 MiB for worker processes"), std::string::npos);
  probe.shares_workers = true;
  EXPECT_EQ(plan().as_written.prediction.workers_bytes, 2 * 100 * mib) << "evaluations use training's";
}

TEST(Plan, AWindowThatIsNoPowerOfTwoKeepsTheBatchAsWritten) {
  const Plan plan = plan_of(experiment_of(12, 3), 0);
  for (const PlanRow& row : plan.rows) EXPECT_EQ(row.setting.batch_size * row.setting.accumulation, 36);
  EXPECT_EQ(plan.as_written.setting.batch_size, 12);
  EXPECT_EQ(halvings(12), (std::vector<int64_t>{12, 6, 3, 2, 1}));
}

TEST(Plan, WithoutALimitNothingIsToChange) {
  const Plan plan = plan_of(experiment_of(16, 4), 0);
  ASSERT_TRUE(plan.something_fits());
  EXPECT_EQ(plan.recommended->setting.batch_size, 16);
  EXPECT_EQ(plan.recommended->setting.micro_batch, 16);
}

// Between a plan and the start others may take memory: less than for the planned micro-batch is no reason to refuse.
TEST(Plan, TheLeastIsThatOfTheSmallestMicroBatch) {
  const auto least_at = [](int64_t micro_batch) {
    return plan_of(experiment_of(16, 4, micro_batch), 0).as_written.prediction.least_bytes;
  };
  ASSERT_LT(least_at(1), least_at(16));
  const Plan automatic = plan_of(experiment_of(16, 4), 0);
  EXPECT_EQ(automatic.as_written.setting.micro_batch, 16);
  EXPECT_EQ(automatic.least_bytes(), least_at(1));
  EXPECT_EQ(plan_of(experiment_of(16, 4, 8), 0).least_bytes(), least_at(8)) << "a fixed one stays";
  Probe whole = straight_probe();
  whole.indivisible_because = "it must not be divided";
  EXPECT_EQ(plan_of(experiment_of(16, 4), 0, whole).least_bytes(), least_at(16));
}

TEST(Plan, AutoBecomesTheLargestMicroBatchThatFits) {
  const Plan plan = plan_of(experiment_of(16, 4), 240);  // 105 + 2 x 16 of slots + 10 a sample
  EXPECT_EQ(plan.as_written.setting.micro_batch, 8);
  EXPECT_TRUE(plan.as_written.fits);
  EXPECT_LE(plan.as_written.prediction.peak_bytes, 240 * mib);
}

TEST(Plan, ASmallerBatchIsRecommendedWhereItsSlotsAreWhatIsTooMuch) {
  const Plan plan = plan_of(experiment_of(64, 1), 160);  // 128 MiB of slots at 64
  EXPECT_FALSE(plan.as_written.fits);
  ASSERT_TRUE(plan.something_fits());
  EXPECT_LT(plan.recommended->setting.batch_size, 64);
  EXPECT_EQ(plan.recommended->setting.batch_size * plan.recommended->setting.accumulation, 64);
  const std::string text = plan.text(experiment_of(64, 1));
  EXPECT_NE(text.find("--set train.batch_size="), std::string::npos) << text;
}

TEST(Plan, WhatFitsWithOneBatchAtATimeIsTheSettingItStartsWith) {
  const Plan plan = plan_of(experiment_of(64, 1), 210);  // 105 + 64 of one slot + 10 a sample
  EXPECT_FALSE(plan.as_written.fits);
  EXPECT_EQ(plan.as_written.setting.micro_batch, 2);
  EXPECT_LE(plan.as_written.prediction.least_bytes, 210 * mib);
  EXPECT_GT(plan.as_written.prediction.peak_bytes, 210 * mib);
}

TEST(Plan, WhatFitsWithLessReadAheadIsNoReasonToChangeAFixedMicroBatch) {
  const Experiment experiment = experiment_of(16, 1, /*micro_batch=*/8);
  const Plan plan = plan_of(experiment, 215);  // 105 + 2 x 16 of slots + 80, which is one slot too many
  EXPECT_FALSE(plan.as_written.fits);
  ASSERT_TRUE(plan.as_written.works);
  const std::string text = plan.text(experiment);
  EXPECT_NE(text.find("16 x 1            8"), std::string::npos) << text;
  EXPECT_NE(text.find(", which fits with less read ahead and cached; "), std::string::npos) << text;
  EXPECT_NE(text.find("Nothing to change."), std::string::npos) << text;
  EXPECT_TRUE(plan.json().at("recommendation").at("works"));
}

TEST(Plan, ARefusalNamesTheSettingThatFits) {
  const Experiment experiment = experiment_of(64, 1);
  const Plan plan = plan_of(experiment, 130);
  ASSERT_TRUE(plan.something_fits());
  EXPECT_GT(plan.as_written.prediction.least_bytes, 130 * mib);
  const std::string text = plan.refusal(experiment);
  EXPECT_NE(text.find("as written, 64 x 1, micro-batch 1, it needs at least"), std::string::npos) << text;
  EXPECT_NE(text.find("--set train.batch_size="), std::string::npos) << text;
}

TEST(Plan, AFixedMicroBatchThatIsTooLargeIsAdvisedToBeAuto) {
  const Experiment experiment = experiment_of(16, 1, /*micro_batch=*/16);
  const Plan plan = plan_of(experiment, 240);
  EXPECT_EQ(plan.as_written.setting.micro_batch, 16);
  EXPECT_FALSE(plan.as_written.fits);
  EXPECT_NE(plan.text(experiment).find("train.micro_batch=auto"), std::string::npos) << plan.text(experiment);
}

TEST(Plan, SaysWhatTheSmallestSettingNeedsWhereNothingFits) {
  const Experiment experiment = experiment_of(16, 4);
  const Plan plan = plan_of(experiment, 50);
  EXPECT_FALSE(plan.something_fits());
  EXPECT_FALSE(plan.as_written.fits);
  EXPECT_EQ(plan.as_written.setting.micro_batch, 1);
  EXPECT_TRUE(plan.json().at("recommendation").is_null());
  const std::string text = plan.refusal(experiment);
  EXPECT_NE(text.find("50.0 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("100.0 MiB between windows, 1.0 MiB for one batch, "), std::string::npos) << text;
}

TEST(Plan, CoupledSamplesLeaveOneRow) {
  Probe probe = straight_probe();
  probe.indivisible_because = "model 'norm' couples the samples of a batch, so a batch is never divided";
  const Plan plan = plan_of(experiment_of(16, 4), 240, probe);
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows.front().setting.micro_batch, 16);
  EXPECT_FALSE(plan.something_fits());
  EXPECT_NE(plan.refusal(experiment_of(16, 4)).find("couples"), std::string::npos);
}

TEST(Plan, OutputsThatAreKeptAreToldAsArithmetic) {
  Probe probe = straight_probe();
  probe.kept_bytes = mib;
  Experiment experiment = experiment_of(8, 1);
  experiment.metrics.mode = "full";
  const Plan plan = plan_of(experiment, 600, probe);
  EXPECT_FALSE(plan.something_fits());
  const std::string text = plan.refusal(experiment);
  EXPECT_NE(text.find("1100 samples x 1.0 MiB = 1.1 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("metrics.mode = \"online\""), std::string::npos) << text;
}

}  // namespace
}  // namespace headroom
