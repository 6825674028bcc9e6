// Random numbers drawn in parts and with vectors: LibTorch's own, bit for bit.
#include <ATen/ops/normal_native.h>
#include <ATen/ops/uniform_native.h>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "headroom/sdk/cpu_kernel.hpp"
#include "train/random_draws.hpp"

namespace headroom {
namespace {

class RandomDraws : public testing::Test {
 protected:
  void SetUp() override {
    const FastDraws fast = draw_random_numbers_fast();
    const bool libtorch_has_fma = at::get_cpu_capability() != "DEFAULT";
    EXPECT_EQ(fast.uniform, libtorch_has_fma == (sdk::cpu_isa() != sdk::CpuIsa::baseline));
    EXPECT_TRUE(fast.normal);
  }
  void TearDown() override { at::set_num_threads(threads_); }

 private:
  int threads_ = at::get_num_threads();
};

// OpenMP ends a process that has no memory for a thread's stack.
TEST(RandomDrawsBeforeThreads, TheyAreMadeFastWithoutAny) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has no thread yet
  const auto exit_code = [] {
    const auto threads = [] {
      const std::filesystem::directory_iterator tasks("/proc/self/task");
      return std::distance(begin(tasks), end(tasks));
    };
    at::set_num_threads(4);
    const auto before = threads();
    draw_random_numbers_fast();
    return static_cast<int>(threads() - before);
  };
  EXPECT_EXIT(std::_Exit(exit_code()), testing::ExitedWithCode(0), "");
}

// After `before` words.
void expect_libtorchs(int64_t before, int64_t count) {
  at::Generator ours = at::detail::createCPUGenerator(7), theirs = at::detail::createCPUGenerator(7);
  for (const at::Generator& generator : {ours, theirs}) {
    at::Tensor some = at::empty({before});
    at::native::uniform_(some, 0, 1, generator);
  }
  at::Tensor found = at::empty({count}), wanted = at::empty({count});
  const auto expect_same = [&](const char* what) {
    EXPECT_TRUE(found.equal(wanted)) << what << ": " << before << " and " << count;
    EXPECT_TRUE(ours.get_state().equal(theirs.get_state())) << what << ": " << before << " and " << count;
  };
  found.uniform_(-0.25, 0.1, ours);
  at::native::uniform_(wanted, -0.25, 0.1, theirs);
  expect_same("uniform");
  found.normal_(0.5, 0.02, ours);
  at::native::normal_(wanted, 0.5, 0.02, theirs);
  expect_same("normal");
}

TEST_F(RandomDraws, TheNumbersAndTheStateAreLibTorchs) {
  for (const int threads : {1, 2, 7}) {
    at::set_num_threads(threads);
    for (const int64_t before : {0, 1, 623, 624, 625})
      for (const int64_t count : {4096, 4368, 5000, 524'288, 1'500'001}) expect_libtorchs(before, count);
  }
}

// Of the upper bound LibTorch makes the lower one, in some of its versions.
TEST_F(RandomDraws, WhereNumbersAreRoundedToTheUpperBoundTheyAreLibTorchs) {
  for (const auto& [from, below] : {std::pair(100.0, 101.0), {0.9, 1.1}, {0.0, 0.0}, {-0.0, 0.0}}) {
    at::Tensor found = at::empty({4'000'000}), wanted = found.clone();
    found.uniform_(from, below, at::detail::createCPUGenerator(1));
    at::native::uniform_(wanted, from, below, at::detail::createCPUGenerator(1));
    EXPECT_TRUE(found.equal(wanted)) << from << " to " << below;
    EXPECT_TRUE(found.signbit().equal(wanted.signbit())) << from << " to " << below;
  }
}

TEST_F(RandomDraws, AModulesWeightsAreTheSameAsWithoutVectors) {
  torch::manual_seed(3);
  const torch::nn::Linear module(torch::nn::LinearOptions(300, 200));
  torch::manual_seed(3);
  at::Tensor weight = at::empty({200, 300}), bias = at::empty({200});
  const double bound = 1 / std::sqrt(300.0);
  at::native::uniform_(weight, -bound, bound, std::nullopt);
  at::native::uniform_(bias, -bound, bound, std::nullopt);
  EXPECT_TRUE(module->weight.equal(weight));
  EXPECT_TRUE(module->bias.equal(bias));
}

TEST_F(RandomDraws, OtherTensorsAndRangesAreLeftToLibTorch) {
  at::set_num_threads(2);
  for (const at::Tensor& like : {at::empty({1000, 1000}).t(), at::empty({1'000'000}, at::kDouble),
                                 at::empty({1'000'000}, at::kBFloat16), at::empty({5})}) {
    at::Tensor found = like.clone(), wanted = like.clone();
    found.uniform_(-1, 2, at::detail::createCPUGenerator(1));
    at::native::uniform_(wanted, -1, 2, at::detail::createCPUGenerator(1));
    EXPECT_TRUE(found.equal(wanted)) << like.dtype();
    found.normal_(-1, 2, at::detail::createCPUGenerator(1));
    at::native::normal_(wanted, -1, 2, at::detail::createCPUGenerator(1));
    EXPECT_TRUE(found.equal(wanted)) << like.dtype();
  }
  EXPECT_THROW(at::empty({1'000'000}).uniform_(2, 1), c10::Error);
  EXPECT_THROW(at::empty({1'000'000}).uniform_(-3e38, 3e38), c10::Error);
  EXPECT_THROW(at::empty({1'000'000}).normal_(0, -1), c10::Error);
}

}  // namespace
}  // namespace headroom
