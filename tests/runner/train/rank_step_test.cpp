// The steps of two processes that share each window, while one of them runs out of memory, or cannot go on.
#include <functional>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../ranks/in_ranks.hpp"
#include "memory/budget.hpp"
#include "memory/tensor_allocator.hpp"
#include "train/train_step.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

// Windows of 6 samples, 3 for each rank in micro-batches of 1. The gradients are four buckets in fp64, and those of
// the head are sent before backward reaches the hidden layer.
const std::vector<std::string> divided = {
    "model.options.hidden=140000", "model.options.dropout=0.2",    "model.options.count_calls=false",
    "data.options.samples=20",     "data.options.group_size=1",    "train.precision=fp64",
    "train.batch_size=3",          "train.micro_batch=1",          "train.gradient_accumulation_steps=2",
    "train.clip_norm=1",           "train.optimizer.name=\"sgd\"", "train.optimizer.lr=0.1"};

class Steps {
 public:
  explicit Steps(RankGroup& group, StepHooks hooks = {}, const std::vector<std::string>& more = {})
      : trial_(with(more), std::shared_ptr<RankGroup>(&group, [](RankGroup*) {})),
        step(*trial_, std::move(hooks)),
        loader_(trial_->data.source, trial_->data.splits.train, Normalizer(), trial_->loader_options(true)) {
    loader_.seek(0, 0, /*continuous=*/true);
  }

  TrainStep::Gradients accumulate(int64_t number) {
    const auto size = static_cast<uint64_t>(trial_->data.window_samples()),
               first = static_cast<uint64_t>(number) * size;
    WindowBatches batches(loader_, 0, first, std::min(first + size, trial_->data.samples_per_epoch()));
    return step.accumulate(batches, number);
  }
  // Of one epoch: the bits that are left of it.
  std::string take_all() {
    std::string bits;
    for (int64_t number = 0; number < trial_->data.windows_per_epoch(); ++number) {
      const TrainStep::Gradients gradients = accumulate(number);
      bits += std::to_string(gradients.loss) + ' ' + std::to_string(gradients.samples) + ' ';
      const EssentialAllocations essential;
      step.apply(0.1, number);
    }
    for (const Parameter& parameter : trial_->model->parameters())
      bits.append(static_cast<const char*>(parameter.tensor->const_data_ptr()), parameter.tensor->nbytes());
    return bits;
  }

 private:
  static std::vector<std::string> with(const std::vector<std::string>& more) {
    std::vector<std::string> words = divided;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TrialSetup trial_;

 public:
  TrainStep step;

 private:
  Loader loader_;
};

// At every so manieth allocation of an epoch, on either rank.
TEST(RankStep, WhatRunsOutOfMemoryOnOneRankIsComputedAgainToTheSameBits) {
  for (const int failing : {0, 1}) {
    const auto ended = in_ranks(
        2,
        [&](RankGroup& group) {
          install_tensor_allocator();
          at::set_num_threads(1);
          int64_t allocations = 0;
          const std::string expected = [&] {
            Steps steps(group);
            const int64_t before = tensor_allocations();
            std::string bits = steps.take_all();
            allocations = tensor_allocations() - before;
            return bits;
          }();
          std::vector<double> asked = {static_cast<double>(group.ranks().rank == failing ? allocations : 0)};
          group.add_up(asked);
          allocations = static_cast<int64_t>(asked.front());
          const int64_t stride = HEADROOM_EVERY_ALLOCATION ? 1 : allocations / 11 + 1;
          int64_t repeated = 0, failures = 0;
          for (int64_t at = 0; at < allocations; at += stride, ++failures) {
            Steps steps(group);
            fail_tensor_allocation(group.ranks().rank == failing ? at : -1);
            const std::string bits = steps.take_all();
            fail_tensor_allocation(-1);
            if (bits != expected) {
              std::fprintf(stderr, "rank %d: allocation %ld of rank %d\n", group.ranks().rank, at, failing);
              return 1;
            }
            repeated += steps.step.retry().counts().repeated;
          }
          return repeated >= (group.ranks().rank == failing ? failures / 2 : 0) ? as_expected : 2;
        },
        HEADROOM_EVERY_ALLOCATION ? 5000 : 800);
    EXPECT_EQ(ended, std::vector<int>(2, as_expected)) << "rank " << failing;
  }
}

// Each finds its own micro-batch: 3 against 1, so that one has thrice the passes.
TEST(RankStep, MicroBatchesMayDiffer) {
  const auto ended = in_ranks(2, [](RankGroup& group) {
    const std::vector<std::string> adapts = {"train.micro_batch=\"auto\""};
    Steps all(group, {}, adapts);
    const TrainStep::Gradients expected = all.accumulate(0);
    Steps one(group, {}, adapts);
    if (group.ranks().rank == 1) one.step.retry().micro_batch().restore(1);
    const TrainStep::Gradients gradients = one.accumulate(0);
    const bool same_loss = std::abs(gradients.loss - expected.loss) <= 1e-12 * std::abs(expected.loss);
    const bool same_norm = std::abs(gradients.norm - expected.norm) <= 1e-12 * expected.norm;
    return same_loss && same_norm && gradients.samples == 6 ? as_expected : 1;
  });
  EXPECT_EQ(ended, std::vector<int>(2, as_expected));
}

// The others have sent their buckets by then, or will.
TEST(RankStep, WhereOthersTookTheMemoryOfOneRankAllKeepTheirWeightsAndCanGoOn) {
  for (const int taken : {0, 1}) {
    const auto ended = in_ranks(2, [&](RankGroup& group) {
      Steps undisturbed(group);
      const TrainStep::Gradients expected = undisturbed.accumulate(0);
      int batches = 0;
      Steps steps(group, {.wants_outputs = [&](const Batch&) {
                    if (++batches == 1 && group.ranks().rank == taken) throw TakenByOthers(Shortage{});
                    return false;
                  }});
      try {
        steps.accumulate(0);
        return 1;
      } catch (const TakenOnAnotherRank&) {
        if (group.ranks().rank == taken) return 2;
      } catch (const TakenByOthers&) {
        if (group.ranks().rank != taken) return 3;
      }
      const TrainStep::Gradients again = steps.accumulate(0);
      return again.loss == expected.loss && again.norm == expected.norm ? as_expected : 4;
    });
    EXPECT_EQ(ended, std::vector<int>(2, as_expected)) << "rank " << taken;
  }
}

}  // namespace
}  // namespace headroom
