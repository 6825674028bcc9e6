// What may start beside runs that are not of the sweep.
#include "sweep/admission.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "../memory/reservation_trial.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using Answer = Admission::Answer;

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
