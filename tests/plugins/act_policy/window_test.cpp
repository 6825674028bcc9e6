// One window of 64 demonstrations gives one gradient, in any batches and after running out of memory, with dropout on.
#include "../../runner/train/gradients.hpp"
#include "../../runner/train/loader_batch.hpp"
#include "../../runner/train/retry_of.hpp"
#include "memory/tensor_allocator.hpp"
#include "plugin_under_test.hpp"

namespace headroom {
namespace {

constexpr int64_t kSamples = 64;

Robot without_eps() {
  Robot robot;
  robot.has_eps = false;
  return robot;
}
const Robot kWithoutEps = without_eps();

class ActPolicyWindow : public testing::Test {
 protected:
  void SetUp() override {
    install_tensor_allocator();
    at::set_num_threads(1);
  }
  void TearDown() override { fail_tensor_allocation(-1); }

  // `fail_at`: the tensor allocation of the window that fails, once; -1: none.
  WindowResult window_of(int64_t batch_size, int64_t micro_batch, at::ScalarType dtype, int64_t fail_at = -1,
                         const std::string& options = kTiny + "dropout = 0.1") {
    const auto model = make_policy(options, kWithoutEps);
    model->to(at::kCPU, dtype);
    Retry retry = retry_of({micro_batch, /*adapts=*/false});
    Window window(*model, at::kCPU, dtype, retry);
    const Demonstrations all = Demonstrations::random(kSamples, kWithoutEps);
    std::vector<Batch> batches;
    for (int64_t first = 0; first < kSamples; first += batch_size)
      batches.push_back(loader_batch(all.part(first, batch_size).fields(kWithoutEps), first));
    window.begin();
    const int64_t before = tensor_allocations();
    fail_tensor_allocation(fail_at);
    for (size_t i = 0; i < batches.size(); ++i) {
      if (window.add(batches[i], 0)) continue;
      window.begin();
      i = static_cast<size_t>(-1);
    }
    fail_tensor_allocation(-1);
    allocations_ = tensor_allocations() - before;
    repeated_ = retry.counts().repeated;
    return take(window);
  }

  int64_t allocations_ = 0, repeated_ = 0;
};

TEST_F(ActPolicyWindow, AnySplitGivesOneGradientInFloat64) {
  const WindowResult whole = window_of(64, 64, at::kDouble);
  EXPECT_EQ(whole.weight, 64.0);
  EXPECT_GT(whole.gradients.size(), 100u);
  EXPECT_LT(difference(whole, window_of(16, 16, at::kDouble)), 1e-12);
  EXPECT_LT(difference(whole, window_of(64, 7, at::kDouble)), 1e-12);
}

TEST_F(ActPolicyWindow, AnySplitGivesOneGradientInFloat32) {
  const WindowResult whole = window_of(64, 64, at::kFloat);
  EXPECT_LT(difference(whole, window_of(16, 16, at::kFloat)), 1e-5);
}

TEST_F(ActPolicyWindow, RunningOutOfMemoryAnywhereChangesNotABit) {
  const WindowResult whole = window_of(16, 16, at::kDouble);
  const int64_t allocations = allocations_;
  ASSERT_GT(allocations, 400);
  for (int64_t k = 3; k < allocations; k += allocations / 12) {
    EXPECT_EQ(difference(whole, window_of(16, 16, at::kDouble, k)), 0.0) << "allocation " << k;
    EXPECT_EQ(repeated_, 1) << "allocation " << k;
  }
}

TEST_F(ActPolicyWindow, DropoutReallyDropsSomething) {
  const WindowResult whole = window_of(64, 64, at::kDouble);
  EXPECT_GT(difference(whole, window_of(64, 64, at::kDouble, -1, kTiny + "dropout = 0.0")), 1e-3);
}

}  // namespace
}  // namespace headroom
