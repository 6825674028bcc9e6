// Phases of the steps that are measured.
#include "profile/step_profile.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace headroom {
namespace {

// One window as a loop takes it; true: it goes on.
bool take_step(StepProfile& profile) {
  const WatchScope watched(&profile);
  profile.begin_step();
  { const PhaseScope waiting(StepPhase::wait); }
  {
    const PhaseScope forward(StepPhase::forward);
    torch::ones({64, 64}).matmul(torch::ones({64, 64}));
    { const PhaseScope reading_within(StepPhase::wait); }
    torch::ones({8}).exp();
  }
  {
    const PhaseScope saving(StepPhase::checkpoint);
    torch::zeros({8});
  }
  return profile.end_step({.samples = 8, .micro_batch = 4, .read = {}});
}

int64_t calls_of(const Profile& profile, const std::string& name) {
  for (const OperatorTime& one : profile.operators) {
    if (one.name == name) return one.calls;
  }
  return 0;
}

TEST(StepProfile, MeasuresSoManyStepsAfterItsWarmUp) {
  StepProfile profile(/*warm_up=*/2, /*steps=*/3, nullptr);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take_step(profile)) << i;
  EXPECT_FALSE(profile.done());
  EXPECT_FALSE(take_step(profile));
  ASSERT_TRUE(profile.done());
  torch::ones({64, 64}).matmul(torch::ones({64, 64}));  // after the last step
  const Profile result = profile.result();
  EXPECT_EQ(result.step_ns.size(), 3u);
  EXPECT_EQ(result.samples, 24);
  EXPECT_EQ(result.micro_batch, 4);
  EXPECT_EQ(calls_of(result, "aten::matmul"), 3);
  EXPECT_EQ(calls_of(result, "aten::exp"), 3);
}

TEST(StepProfile, EachMomentOfAStepIsInOnePhase) {
  StepProfile profile(/*warm_up=*/0, /*steps=*/2, nullptr);
  EXPECT_TRUE(take_step(profile));
  EXPECT_FALSE(take_step(profile));
  const Profile result = profile.result();
  Spent together;
  for (const Spent& phase : result.phases) together += phase;
  EXPECT_EQ(together.ns, result.steps.ns);
  EXPECT_EQ(together.cpu_ns, result.steps.cpu_ns);
  EXPECT_EQ(together.minor_faults, result.steps.minor_faults);
  EXPECT_EQ(together.operators_ns, result.steps.operators_ns);
  EXPECT_EQ(result.step_ns[0] + result.step_ns[1], result.steps.ns);
  const Spent& forward = result.phases[static_cast<size_t>(StepPhase::forward)];
  EXPECT_GT(forward.operators_ns, 0);
  EXPECT_LE(forward.operators_ns, forward.ns);
  EXPECT_EQ(result.phases[static_cast<size_t>(StepPhase::wait)].operators_ns, 0);
  EXPECT_EQ(result.phases[static_cast<size_t>(StepPhase::backward)].ns, 0);
}

TEST(StepProfile, CheckpointsBetweenStepsCountAndAreInNoStep) {
  StepProfile profile(/*warm_up=*/0, /*steps=*/1, nullptr);
  EXPECT_FALSE(take_step(profile));
  {
    const WatchScope watched(&profile);
    const PhaseScope saving(StepPhase::checkpoint);
  }
  const Profile result = profile.result();
  EXPECT_EQ(result.checkpoints, 2);
  EXPECT_GT(result.checkpoint_ns, 0);
  Spent together;
  for (const Spent& phase : result.phases) together += phase;
  EXPECT_EQ(together.ns, result.steps.ns);
}

TEST(StepProfile, AThreadThatNobodyWatchesHasNoPhases) {
  StepProfile profile(/*warm_up=*/0, /*steps=*/1, nullptr);
  EXPECT_EQ(watch_of_thread, nullptr);
  { const PhaseScope saving(StepPhase::checkpoint); }
  EXPECT_EQ(profile.result().checkpoints, 0);
}

}  // namespace
}  // namespace headroom
