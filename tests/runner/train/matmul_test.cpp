#include "train/matmul.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

namespace headroom {
namespace {

constexpr MatmulProbe like_zen5{2.1, 4e-7, 1e-6, false}, like_zen4{1.08, 4e-7, 9e-7, false},
    like_amx{6.0, 4e-7, 3e-3, false}, like_intel{1.02, 4e-7, 5e-7, false}, like_avx2{1.06, 4e-7, 4e-7, true};

at::Float32Precision setting() {
  return at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
}

class Matmul : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override {
    apply_matmul({});
    at::set_num_threads(threads_);
    std::filesystem::remove_all(folder_);
  }
  const int threads_ = at::get_num_threads();
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("matmul-test-" + std::to_string(getpid()));
};

TEST_F(Matmul, AutoIsFastWhereThatPaysAndRoundsAsFloat32) {
  EXPECT_TRUE(choose_matmul("auto", false, like_zen5).fast);
  EXPECT_FALSE(choose_matmul("auto", false, like_zen5).changes_mathematics);
  EXPECT_NE(choose_matmul("auto", false, like_zen5).line.find("2.10 times as fast as MKL"), std::string::npos);
  EXPECT_TRUE(choose_matmul("auto", false, like_zen4).fast);
  EXPECT_FALSE(choose_matmul("auto", false, like_amx).fast);
  EXPECT_FALSE(choose_matmul("auto", false, like_intel).fast);
  EXPECT_FALSE(choose_matmul("auto", false, like_avx2).fast);
  EXPECT_FALSE(choose_matmul("ieee", false, like_zen5).fast);
}

TEST_F(Matmul, ProductsAreLargeByMostWeightsOrByTheModelsWord) {
  using List = std::vector<int64_t>;
  EXPECT_TRUE(are_large(false, List{512 * 512, 512 * 2048, 96 * 96}));
  EXPECT_FALSE(are_large(false, List{84 * 512, 128 * 512, 128 * 512}));
  EXPECT_FALSE(are_large(false, List{256 * 512, 300 * 400, 300 * 400}));
  EXPECT_FALSE(are_large(false, List{}));
  EXPECT_TRUE(are_large(true, List{96 * 96}));
}

TEST_F(Matmul, FastChangesTheMathematicsWhereItIsLessExact) {
  const MatmulChoice on_amx = choose_matmul("fast", false, like_amx);
  EXPECT_TRUE(on_amx.fast && on_amx.changes_mathematics);
  EXPECT_NE(on_amx.line.find("less exact than float32, with errors 7500 times as large"), std::string::npos)
      << on_amx.line;
  const MatmulChoice on_intel = choose_matmul("fast", false, like_intel);
  EXPECT_TRUE(on_intel.fast && !on_intel.changes_mathematics);
  const MatmulChoice on_avx2 = choose_matmul("fast", false, like_avx2);
  EXPECT_FALSE(on_avx2.fast || on_avx2.changes_mathematics);
  EXPECT_NE(on_avx2.line.find("changes nothing"), std::string::npos) << on_avx2.line;
}

TEST_F(Matmul, OnAGpuOnlyWhoAsksGetsTF32) {
  EXPECT_FALSE(choose_matmul("auto", true, like_zen5).fast);
  EXPECT_TRUE(choose_matmul("fast", true, {}).changes_mathematics);
}

TEST_F(Matmul, AProbeLeavesSettingsAsTheyWere) {
  at::set_num_threads(2);
  const at::Float32Precision before = setting();
  const MatmulProbe probe = probe_matmul();
  EXPECT_EQ(setting(), before);
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_GT(probe.speedup, 0.0);
  // Of sums of up to 1024 products.
  EXPECT_GT(probe.ieee_error, 0.0);
  EXPECT_LT(probe.ieee_error, 1e-5);
  EXPECT_EQ(probe.same, probe.same && probe.fast_error == probe.ieee_error);
}

TEST_F(Matmul, WhatWasMeasuredIsKept) {
  (void)kept_matmul_probe(folder_);
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  const std::filesystem::path file = std::filesystem::directory_iterator(folder_)->path();
  std::ofstream(file) << R"({"speedup": 7.5, "ieee_error": 1e-7, "fast_error": 2e-7, "same": false})";
  EXPECT_EQ(kept_matmul_probe(folder_).speedup, 7.5);
  std::ofstream(file) << "{";
  EXPECT_NE(kept_matmul_probe(folder_).speedup, 7.5);
}

// The file names the processor, and with it environment variables of any bytes.
TEST_F(Matmul, WhatWasMeasuredIsKeptWhateverTheEnvironmentSays) {
  setenv("DNNL_MAX_CPU_ISA", "\xE9", 1);
  EXPECT_NO_THROW((void)kept_matmul_probe(folder_));
  unsetenv("DNNL_MAX_CPU_ISA");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

// What a choice says of rounding is what it then does.
TEST_F(Matmul, FastProductsRoundAsTheProbeSays) {
  const MatmulProbe probe = probe_matmul();
  const at::Tensor a = at::randn({128, 512}), b = at::randn({512, 384});
  const at::Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
  apply_matmul(choose_matmul("fast", false, probe));
  const double error = ((a.mm(b) - exact).abs().max() / exact.abs().max()).item<double>();
  EXPECT_LT(error, probe.only_rounds() ? 1e-5 : 1e-1);
}

}  // namespace
}  // namespace headroom
