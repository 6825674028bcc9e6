// Whole runs in this process, each of which lacks memory at one tensor allocation: it goes through, and ends with the
// bits of the undisturbed run.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "memory/ledger.hpp"
#include "memory/tensor_allocator.hpp"
#include "train/train.hpp"
#include "trial_setup.hpp"

namespace headroom {

inline std::string read_file(const std::filesystem::path& path) {
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
    const std::filesystem::path run = *std::filesystem::directory_iterator(request.out / "trial");
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
    RecordProperty("allocations", std::to_string(whole.allocations));
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

}  // namespace headroom
