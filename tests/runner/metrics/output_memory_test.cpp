// The memory that sums of outputs take, and what is left of them where there is none.
#include <c10/core/CPUAllocator.h>

#include "memory/tensor_allocator.hpp"
#include "textbook.hpp"

namespace headroom {
namespace {

using Keep = OutputMetrics::Keep;

TEST(OutputSums, TakeTheSameMemoryWhateverIsAdded) {
  OutputMetrics metrics(pairs(false));
  metrics.add(outputs_of({6, 3}));
  const at::Tensor sums = metrics.state().front().second;
  for (int i = 0; i < 50; ++i) metrics.add(outputs_of({6, 3}));
  EXPECT_TRUE(metrics.state().front().second.is_same(sums));
  EXPECT_EQ(sums.nbytes(), 5u * 3u * sizeof(double));
}

// Counts what tensors ask for while it lives.
class CountingAllocator : public c10::Allocator {
 public:
  CountingAllocator() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 100); }
  ~CountingAllocator() override { c10::SetCPUAllocator(before_, 100); }
  c10::DataPtr allocate(size_t bytes) override {
    ++count;
    return before_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return before_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  int count = 0;

 private:
  c10::Allocator* before_;
};

TEST(OutputSums, CommittingAWindowAllocatesNoTensor) {
  StepSums epoch(0, at::kCPU, OutputMetrics(pairs(true))), window(0, at::kCPU, OutputMetrics(pairs(true)));
  const StepResult result{at::ones({}), at::ones({}, at::kDouble), with_mask(outputs_of({4, 3}), {4}), {}};
  window.add(result);
  epoch.add(window);
  const CountingAllocator counting;
  epoch.add(window);
  EXPECT_EQ(counting.count, 0);
  window.add(result);
  EXPECT_GT(counting.count, 0);
}

// Refuses the n-th tensor from now.
class FailingAllocator : public CountingAllocator {
 public:
  explicit FailingAllocator(int which) : which_(which) {}
  c10::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK_WITH(OutOfMemoryError, count != which_, "refused");
    return CountingAllocator::allocate(bytes);
  }

 private:
  int which_;
};

TEST(OutputSums, AMicroBatchThatRunsOutOfMemoryLeavesNoTrace) {
  for (const Keep keep : {Keep::sums, Keep::outputs}) {
    torch::manual_seed(9);
    const StepResult first{at::full({}, 3.0), at::ones({}, at::kDouble), with_mask(outputs_of({4, 3}), {4}), {}};
    const StepResult second{at::full({}, 5.0), at::ones({}, at::kDouble), with_mask(outputs_of({4, 3}), {4}), {}};
    StepSums undisturbed(0, at::kCPU, OutputMetrics(pairs(true), keep));
    undisturbed.add(first);
    undisturbed.add(second);
    int failed = 0;
    for (bool done = false; !done; ++failed) {
      StepSums sums(0, at::kCPU, OutputMetrics(pairs(true), keep));
      sums.add(first);
      try {
        const FailingAllocator failing(failed);
        sums.add(second);
        done = true;
      } catch (const c10::OutOfMemoryError&) {
        sums.add(second);
      }
      EXPECT_EQ(sums.measured("val", {}).values, undisturbed.measured("val", {}).values) << failed;
    }
    EXPECT_GT(failed, 3);
  }
}

// Two pairs, so that memory can run out between them.
StepSums two_pairs() {
  return {
      0, at::kCPU,
      OutputMetrics(pair_outputs(
          "net",
          std::vector<OutputInfo>{{"pose", "rad"}, {"truth", "", HR_TARGET}, {"grip", "N"}, {"force", "", HR_TARGET}},
          {}))};
}

TEST(OutputMetrics, SumsTakeAllOfOtherSumsOrNothing) {
  install_tensor_allocator();
  StepSums window = two_pairs();
  const auto values = [] { return torch::randn({5, 3}); };
  window.add(StepResult{at::ones({}),
                        at::ones({}, at::kDouble),
                        {values(), values(), values(), values()},
                        at::zeros({0, 2}, at::kDouble)});
  int64_t failures = 0;
  for (bool fits = false; !fits; ++failures) {
    StepSums epoch = two_pairs();
    fail_tensor_allocation(failures);
    try {
      epoch.add(window);
      fits = true;
    } catch (const c10::OutOfMemoryError&) {
      epoch.add(window);
    }
    fail_tensor_allocation(-1);
    const auto ours = epoch.outputs().state(), theirs = window.outputs().state();
    ASSERT_EQ(ours.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(ours[i].second.equal(theirs[i].second)) << ours[i].first << ", allocation " << failures;
    }
  }
  EXPECT_GT(failures, 3) << "each pair allocates";
}

}  // namespace
}  // namespace headroom
