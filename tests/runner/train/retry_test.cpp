// Memory runs out at every single tensor allocation of a run, once each: the run goes through and ends with the same
// bits.
#include "train/retry.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "memory/budget.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"
#include "retry_of.hpp"
#include "train/train.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Two epochs of three windows each, validation and checkpoints; in this process.
class WholeRun : public testing::Test {
 protected:
  void SetUp() override {
    install_tensor_allocator();
    at::set_num_threads(1);
  }
  void TearDown() override { fail_tensor_allocation(-1); }

  struct Outcome {
    std::string weights, optimizer;
    nlohmann::json summary;
    int64_t allocations = 0;
    std::array<int64_t, owner_count> left{};  // still held when the run is over
  };

  Outcome run(const std::vector<std::string>& more, int64_t fail_at) {
    std::vector<std::string> words = {
        "data.options.samples=64", "train.batch_size=8", "train.gradient_accumulation_steps=2",
        "train.epochs=2",          "train.clip_norm=1",  "train.ema.decay=0.9",
        "checkpoint.every_steps=2"};
    words.insert(words.end(), more.begin(), more.end());
    TrialSetup trial(words);
    const LedgerReading before = read_ledger();
    const int64_t first = tensor_allocations();
    fail_tensor_allocation(fail_at);
    TrainRequest request;
    request.experiment = trial.load(words);
    request.out = trial.folder() / "runs";
    request.plugin_dirs = {HEADROOM_TEST_PLUGIN_DIR};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    std::string problem;
    try {
      EXPECT_EQ(train(request), Exit::ok);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(problem, "");
    Outcome outcome;
    outcome.allocations = tensor_allocations() - first;
    const fs::path run = *fs::directory_iterator(request.out / "trial");
    outcome.weights = read_file(run / "checkpoints/last/model.safetensors");
    outcome.optimizer = read_file(run / "checkpoints/last/state.safetensors");
    outcome.summary = nlohmann::json::parse(read_file(run / "summary.json"));
    const LedgerReading after = read_ledger();
    for (size_t i = 0; i < owner_count; ++i) outcome.left[i] = after.live_bytes[i] - before.live_bytes[i];
    return outcome;
  }

  // Every `stride`-th allocation fails once, in a run of its own.
  void every_allocation(const std::vector<std::string>& more, int64_t stride) {
    const Outcome whole = run(more, -1);
    ASSERT_FALSE(whole.weights.empty());
    EXPECT_EQ(whole.summary["memory"]["retries"]["train"]["repeated"], 0);
    int64_t repeated = 0;
    for (int64_t k = 0; k < whole.allocations; k += stride) {
      const Outcome outcome = run(more, k);
      ASSERT_EQ(outcome.weights, whole.weights) << "allocation " << k;
      ASSERT_EQ(outcome.optimizer, whole.optimizer) << "allocation " << k;
      ASSERT_EQ(outcome.left, whole.left) << "allocation " << k;
      ASSERT_EQ(outcome.summary["metrics"], whole.summary["metrics"]) << "allocation " << k;
      for (const char* phase : {"train", "eval"}) {
        repeated += outcome.summary["memory"]["retries"][phase]["repeated"].get<int64_t>();
        EXPECT_EQ(outcome.summary["memory"]["retries"][phase]["halved"], 0);
      }
    }
    EXPECT_GT(repeated, whole.allocations / stride / 2);
  }

  // The whole campaign is slow; a sample of it is not.
  static int64_t stride(int64_t quick) { return HEADROOM_EVERY_ALLOCATION ? 1 : quick; }
};

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
