// Memory runs out at a single tensor allocation of one process of a run, from its set-up to its last checkpoint: the
// run goes through and ends with the same bits. rank_step_test.cpp looks closer at the steps.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include "../ranks/in_ranks.hpp"
#include "../record/temporary_folder.hpp"
#include "memory/tensor_allocator.hpp"
#include "plugins/host.hpp"
#include "plugins/torch_model.hpp"
#include "train/train.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// An epoch of windows of 6 samples, which the last does not fill, in micro-batches of 2, validation and checkpoints.
// The gradients are four buckets in fp64: those of the head are sent before backward reaches the hidden layer.
constexpr const char* experiment = R"(
[experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1
[model]
plugin = "trial_model"
[model.options]
hidden = 140000
dropout = 0.2
count_calls = false
[data]
source = "trial_source"
num_workers = 0
max_samples_for_normalize = 8
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 20
group_size = 1
[train]
epochs = 1
batch_size = 3
gradient_accumulation_steps = 2
micro_batch = 2
precision = "fp64"
clip_norm = 1.0
optimizer = { name = "sgd", lr = 0.1, momentum = 0.9 }
[checkpoint]
every_steps = 2
keep = 1
)";

class RankRetry : public TemporaryFolder {
 protected:
  static constexpr int ranks = 2;

  struct Outcome {
    std::string weights, optimizer;
    nlohmann::json metrics;
    std::vector<int64_t> allocations;  // of each rank
  };

  // `fail_at`: the allocation of rank `failing` that is refused; below 0: none is.
  Outcome run(int failing, int64_t fail_at) const {
    const fs::path folder = folder_ / "run";
    fs::remove_all(folder);
    fs::create_directories(folder);
    write_text(folder / "trial.toml", experiment);
    const auto of_rank = [&](const char* what, int rank) { return folder / (what + std::to_string(rank)); };
    const auto ended = in_ranks(ranks, [&](RankGroup& group) {
      const int rank = group.ranks().rank;
      if (std::freopen(of_rank("said-", rank).c_str(), "w", stderr) == nullptr) return 1;
      if (std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
      install_tensor_allocator();
      set_host_torch_tag(host_torch_tag());
      TrainRequest request;
      request.experiment = load_experiment(folder / "trial.toml", {});
      request.out = folder / "runs";
      request.plugin_dirs = {HEADROOM_TEST_PLUGIN_DIR};
      request.group = std::shared_ptr<RankGroup>(&group, [](RankGroup*) {});
      const int64_t before = tensor_allocations();
      fail_tensor_allocation(rank == failing ? fail_at : -1);
      const Exit exit = train(request);
      fail_tensor_allocation(-1);
      write_text(of_rank("allocations-", rank), std::to_string(tensor_allocations() - before));
      return exit == Exit::ok ? as_expected : 2;
    });
    Outcome outcome;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(ended[static_cast<size_t>(rank)], as_expected)
          << "allocation " << fail_at << " of rank " << failing << ": " << read_text(of_rank("said-", rank));
      outcome.allocations.push_back(std::atoll(read_text(of_rank("allocations-", rank)).c_str()));
    }
    if (HasFailure()) return outcome;
    const fs::path made = *fs::directory_iterator(folder / "runs/trial");
    outcome.weights = read_text(made / "checkpoints/last/model.safetensors");
    outcome.optimizer = read_text(made / "checkpoints/last/state.safetensors");
    outcome.metrics = nlohmann::json::parse(read_text(made / "summary.json")).at("metrics");
    return outcome;
  }
};

TEST_F(RankRetry, AFailureAtAnyAllocationOfOneRankLeavesTheRunAsItWas) {
  const Outcome whole = run(0, -1);
  ASSERT_FALSE(whole.weights.empty());
  for (int failing = 0; failing < ranks; ++failing) {
    const int64_t allocations = whole.allocations[static_cast<size_t>(failing)];
    ASSERT_GT(allocations, 0);
    // The whole campaign is slow; a sample of it is not.
    const int64_t stride = HEADROOM_EVERY_ALLOCATION ? 1 : allocations / 5 + 1;
    for (int64_t at = failing; at < allocations; at += stride) {
      const Outcome outcome = run(failing, at);
      ASSERT_EQ(outcome.weights, whole.weights) << "allocation " << at << " of rank " << failing;
      ASSERT_EQ(outcome.optimizer, whole.optimizer) << "allocation " << at << " of rank " << failing;
      ASSERT_EQ(outcome.metrics, whole.metrics) << "allocation " << at << " of rank " << failing;
    }
  }
}

}  // namespace
}  // namespace headroom
