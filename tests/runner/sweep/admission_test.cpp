// What trials need by their plans, and what may start beside runs that are not of the sweep.
#include "sweep/admission.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "../memory/reservation_trial.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using Answer = Admission::Answer;
using Json = nlohmann::json;

Json row(int64_t batch, int64_t micro_batch, int64_t peak_bytes) {
  return {{"batch_size", batch},
          {"micro_batch", micro_batch},
          {"predicted_peak_bytes", peak_bytes},
          {"work_bytes", peak_bytes - 10 * mib},
          {"least_bytes", peak_bytes - 20 * mib}};
}

// 100 MiB, and 10 for a sample of a micro-batch; 10 of it for what is read ahead, 10 for free lists.
Json plan_of_64() {
  Json rows = Json::array();
  for (int64_t batch = 64; batch >= 1; batch /= 2) {
    for (int64_t size = batch; size >= 1; size /= 2) rows.push_back(row(batch, size, (100 + 10 * size) * mib));
  }
  return {{"rows", rows}, {"as_written", rows[0]}};
}

TrialShape shape(int64_t batch, int64_t micro_batch = 0) {
  return {.group = "g", .batch_size = batch, .accumulation = 1, .micro_batch = micro_batch};
}

TEST(Needs, OneTableServesEveryBatchSizeInIt) {
  Needs needs;
  EXPECT_FALSE(needs.of(shape(8), 0));
  needs.add("g", plan_of_64());
  EXPECT_EQ(needs.of(shape(8), 0)->peak_bytes, 180 * mib);
  EXPECT_EQ(needs.of(shape(64), 0)->peak_bytes, 740 * mib);
  EXPECT_FALSE(needs.of(shape(12), 0)) << "no row";
  EXPECT_FALSE(needs.of({.group = "other", .batch_size = 8}, 0));
}

TEST(Needs, AnAutomaticMicroBatchIsTheLargestThatFits) {
  Needs needs;
  needs.add("g", plan_of_64());
  const auto need = needs.of(shape(64), 300 * mib);
  EXPECT_EQ(need->micro_batch, 16);
  EXPECT_EQ(need->peak_bytes, 260 * mib);
  EXPECT_TRUE(need->fits);
  const auto none = needs.of(shape(64), 80 * mib);
  EXPECT_EQ(none->micro_batch, 1);
  EXPECT_FALSE(none->fits);
}

TEST(Needs, WhatFitsBesideOneBatchComesBeforeWhatFitsWithoutFreeLists) {
  Json plan = plan_of_64();
  for (Json& row : plan.at("rows")) {
    if (row.at("micro_batch") > 4) row.at("least_bytes") = 50 * mib;
  }
  plan["as_written"] = plan["rows"][0];
  Needs needs;
  needs.add("g", plan);
  EXPECT_EQ(needs.of(shape(64), 300 * mib)->micro_batch, 16) << "whose work fits";
  const auto tight = needs.of(shape(64), 80 * mib);
  EXPECT_EQ(tight->micro_batch, 64) << "where no work fits: the largest that runs";
  EXPECT_EQ(tight->least_bytes, 50 * mib);
  EXPECT_TRUE(tight->fits);
}

TEST(Needs, AFixedMicroBatchFitsOrDoesNot) {
  Needs needs;
  needs.add("g", plan_of_64());
  EXPECT_FALSE(needs.of(shape(64, 64), 300 * mib)->fits);
  EXPECT_EQ(needs.of(shape(64, 64), 300 * mib)->peak_bytes, 740 * mib);
  EXPECT_TRUE(needs.of(shape(8, 64), 300 * mib)->fits) << "no larger than the batch";
  EXPECT_TRUE(needs.of(shape(16, 16), 250 * mib)->fits);
}

TEST(Needs, WhatAPlanDoesNotSeeSharesItsTable) {
  const TrainSection train;
  const auto group = [&](const Settings& settings) { return shape_of(settings, train).group; };
  EXPECT_EQ(group({{"train.optimizer.lr", "0.1"}, {"experiment.seed", "1"}, {"memory.limit", "\"1 GiB\""}}), group({}));
  EXPECT_EQ(group({{"train.batch_size", "8"}}), group({}));
  EXPECT_NE(group({{"train.optimizer.name", "\"sgd\""}}), group({}));
  EXPECT_NE(group({{"model.options.width", "8"}}), group({{"model.options.width", "16"}}));
  TrainSection long_window;
  long_window.batch_size = 16;
  EXPECT_NE(shape_of({}, long_window).group, group({})) << "a window of one sample is not probed any further";
}

TEST(Needs, OnlyWhatIsLargerInTheSameDirectionNeedsNoLess) {
  const Settings small = {{"train.batch_size", "8"}, {"model.options.width", "4"}, {"train.optimizer.lr", "0.1"}};
  const auto with = [&](size_t i, const std::string& value) {
    Settings settings = small;
    settings[i].second = value;
    return settings;
  };
  EXPECT_TRUE(needs_no_less(small, small));
  EXPECT_TRUE(needs_no_less(with(0, "16"), small));
  EXPECT_FALSE(needs_no_less(with(0, "4"), small));
  EXPECT_FALSE(needs_no_less(with(1, "8"), small)) << "nobody knows what an option costs";
  EXPECT_TRUE(needs_no_less(with(2, "9"), small));
  EXPECT_FALSE(needs_no_less({{"memory.limit", "\"2 GiB\""}}, {{"memory.limit", "\"1 GiB\""}}));
  EXPECT_TRUE(needs_no_less({{"train.micro_batch", "8"}}, {{"train.micro_batch", "\"auto\""}}));
  EXPECT_FALSE(needs_no_less({{"train.micro_batch", "\"auto\""}}, {{"train.micro_batch", "8"}}));
}

class AdmissionTest : public ReservationTrial {
 protected:
  static nlohmann::json plan_of(int64_t bytes) {
    const nlohmann::json row = {{"batch_size", 1},
                                {"micro_batch", 1},
                                {"predicted_peak_bytes", bytes},
                                {"work_bytes", bytes},
                                {"least_bytes", bytes}};
    return {{"rows", {row}}, {"as_written", row}};
  }
  Admission::Judgement judge(const std::string& group, bool alone) {
    admission_.begin_round();
    return admission_.judge(trial_, {.group = group}, "auto", alone, record_);
  }

  Admission admission_;
  const Trial trial_{.id = "001", .settings = {}, .choices = {}};
  TrialRecord record_;
};

// Whatever is free on this machine.
TEST_F(AdmissionTest, AJobHasTheLargestNodeForItself) {
  Child other([](Child& self) { hold(self, "other", int64_t{1} << 50); });
  other.hear();
  admission_ = Admission(int64_t{1} << 48);
  admission_.add_plan({.group = "large"}, plan_of(int64_t{1} << 46));
  EXPECT_EQ(judge("large", /*alone=*/true).answer, Answer::fits);
  EXPECT_GT(record_.limit_bytes, int64_t{1} << 46);
  admission_ = Admission(1000 * mib);
  admission_.add_plan({.group = "most"}, plan_of(560 * mib));
  admission_.add_plan({.group = "huge"}, plan_of(800 * mib));
  EXPECT_EQ(judge("most", true).answer, Answer::fits);
  EXPECT_EQ(record_.limit_bytes, limit_within(1000 * mib)) << "the job's --mem has to fit the node";
  EXPECT_EQ(judge("huge", true).answer, Answer::infeasible);
  admission_ = Admission(0);  // sinfo did not say: then sbatch refuses what is too large
  admission_.add_plan({.group = "large"}, plan_of(int64_t{1} << 46));
  EXPECT_EQ(judge("large", true).answer, Answer::fits);
}

TEST_F(AdmissionTest, WhatOtherRunsHoldMakesNothingInfeasible) {
  admission_.add_plan({.group = "small"}, plan_of(10 * mib));
  admission_.add_plan({.group = "huge"}, plan_of(int64_t{1} << 50));
  Child other([](Child& self) { hold(self, "other", int64_t{1} << 50); });
  other.hear();
  const auto beside = judge("small", /*alone=*/true);
  EXPECT_EQ(beside.answer, Answer::later);
  EXPECT_EQ(beside.why, "it needs at least 10.0 MiB, which other runs hold now: it waits for them");
  EXPECT_EQ(judge("small", /*alone=*/false).answer, Answer::later);
  const auto huge = judge("huge", /*alone=*/true);
  EXPECT_EQ(huge.answer, Answer::infeasible) << "it will not fit then either";
  EXPECT_THAT(huge.why, HasSubstr("it needs at least 1.0 PiB"));
  other.kill();
  EXPECT_EQ(judge("small", /*alone=*/true).answer, Answer::fits) << "the figure of before is not kept";
  EXPECT_EQ(judge("huge", /*alone=*/true).answer, Answer::infeasible);
}

TEST_F(AdmissionTest, AnotherAttemptIsDueWhenThereIsClearlyMoreOrNobodyToWaitFor) {
  const int64_t all = admission_.automatic().bytes;
  EXPECT_FALSE(admission_.automatic().depends_on_others());
  Child other([](Child& self) { hold(self, "other", int64_t{1} << 50); });
  other.hear();
  admission_.begin_round();
  EXPECT_EQ(admission_.automatic().bytes, 1);
  EXPECT_TRUE(admission_.automatic().depends_on_others());
  EXPECT_FALSE(admission_.is_due_again(1));
  EXPECT_TRUE(admission_.is_due_again(all)) << "those who hold it had as much before";
  other.kill();
  EXPECT_FALSE(admission_.is_due_again(1)) << "this round looks once";
  admission_.begin_round();
  EXPECT_TRUE(admission_.is_due_again(1));
}

}  // namespace
}  // namespace headroom
