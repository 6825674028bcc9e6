// Memory runs out at every single tensor allocation of a run, once each: the run goes through and ends with the same
// bits.
#include "train/retry.hpp"

#include <gtest/gtest.h>

#include "memory/budget.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"
#include "retry_of.hpp"
#include "whole_run.hpp"

namespace headroom {
namespace {

TEST_F(WholeRun, SurvivesAFailureAtAnyAllocation) { every_allocation({"model.options.dropout=0.2"}, stride(113)); }

TEST_F(WholeRun, PutsBackWhatAModelRemembersBesideItsTensors) {
  every_allocation({"model.options.remember=true"}, stride(143));
}

TEST_F(WholeRun, PutsBackTheGeneratorAndWhatEvaluationLeaves) {
  every_allocation(
      {"model.plugin=trial_generator_model", "model.options.randomness=sequential", "model.options.dropout=0.2",
       "model.options.remember=true", "model.options.evaluation_leaves_traces=true", "data.options.samples=32"},
      stride(41));
}

TEST_F(WholeRun, LeavesNoStepOfAnOptimizerPluginHalfDone) {
  every_allocation({"train.optimizer.name=" HEADROOM_BUILD_DIR "/examples/muon.so", "model.options.dropout=0.2"},
                   stride(151));
}

TEST_F(WholeRun, RepeatsAFixedMicroBatchToo) {
  every_allocation({"train.micro_batch=3", "model.options.dropout=0.2", "train.precision=fp64"}, stride(203));
}

// A mistake of the trial model, for a scope.
class Fault {
 public:
  explicit Fault(const char* fault) { setenv("HEADROOM_TEST_FAULT", fault, 1); }
  ~Fault() { unsetenv("HEADROOM_TEST_FAULT"); }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
};

TEST_F(WholeRun, KeepsLessForBackwardWhereNothingSmallerExists) {
  const std::vector<std::string> words = {"train.micro_batch=4", "model.options.dropout=0.2"};
  const Outcome whole = run(words, -1);
  EXPECT_EQ(whole.summary["memory"]["recompute"], nlohmann::json::array());
  const Fault fault("keep:2");
  const Outcome outcome = run(words, -1);
  EXPECT_EQ(outcome.weights, whole.weights);
  EXPECT_EQ(outcome.optimizer, whole.optimizer);
  EXPECT_EQ(outcome.summary["memory"]["recompute"], (nlohmann::json{"input", "hidden"}));
  EXPECT_EQ(outcome.summary["memory"]["retries"]["train"]["repeated"], 1);
  EXPECT_EQ(outcome.summary["memory"]["retries"]["train"]["recomputed"], 2);
}

TEST_F(WholeRun, RecomputesWhatTheFileSays) {
  const std::vector<std::string> words = {"model.options.dropout=0.2"};
  const Outcome whole = run(words, -1);
  const Fault fault("keep:0");
  const Outcome outcome = run({"model.options.dropout=0.2", "memory.recompute=[\"hidden\"]"}, -1);
  EXPECT_EQ(outcome.weights, whole.weights);
  EXPECT_EQ(outcome.summary["memory"]["recompute"], nlohmann::json{"hidden"});
  EXPECT_EQ(outcome.summary["memory"]["retries"]["train"]["repeated"], 0);
}

TEST(RetryTest, WhatOthersTookIsNoNeedOfTheRun) {
  constexpr int64_t mib = 1 << 20;
  static const Experiment experiment;
  const Advice advice(experiment, "", /*recomputes=*/false);
  const int64_t limit = held_bytes() + 200 * mib;
  const auto refused = [&](int64_t ceiling, int64_t asked) {
    set_memory_limit(limit);
    set_memory_ceiling(ceiling);
    Exit code = Exit::ok;
    try {
      with_one_retry("the sums of an evaluation", Owner::metrics, at::kCPU, advice, [&] {
        take_refusal();
        if (asked > 0) note_refusal(asked);
        throw std::bad_alloc();
      });
    } catch (const Error& error) {
      code = error.exit_code();
    }
    set_memory_limit(0);
    set_memory_ceiling(INT64_MAX);
    return code;
  };
  EXPECT_EQ(refused(limit - 150 * mib, 100 * mib), Exit::resumable);
  EXPECT_EQ(refused(limit - 150 * mib, 300 * mib), Exit::does_not_fit) << "it would not have fitted before";
  EXPECT_EQ(refused(INT64_MAX, 100 * mib), Exit::does_not_fit) << "nobody took anything";
  EXPECT_EQ(refused(limit - 150 * mib, 0), Exit::does_not_fit) << "nothing was refused by the limit";
}

// A cache that is full again after each attempt gives back for ever: that is no way on.
TEST(RetryTest, WhatIsCachedAgainKeepsNobodyFromTheEnd) {
  constexpr int64_t cached = 1 << 20;
  bool full = false;
  const auto empty = [&](int64_t) -> int64_t {
    if (!std::exchange(full, false)) return 0;
    account(Owner::cache, -cached);
    return cached;
  };
  const RungRegistration cache =
      add_rung({.name = "cache", .order = 100, .give_back = empty, .tighten = [] {}, .relax = [] {}});
  Retry retry = retry_of(MicroBatch(4, /*adapts=*/true));
  int attempts = 0;
  const auto attempt = [&] {
    ++attempts;
    account(Owner::cache, cached);
    full = true;
    retry.after(Shortage::now("forward", retry.size()));
  };
  EXPECT_THROW(while (attempts < 20) attempt(), Error);
  EXPECT_EQ(attempts, 5) << "as it was, without what is cached, in halves, in quarters, and no further";
  empty(0);
}

}  // namespace
}  // namespace headroom
