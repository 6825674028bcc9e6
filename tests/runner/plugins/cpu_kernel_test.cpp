#include "headroom/sdk/cpu_kernel.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace headroom {
namespace {

TEST(CpuKernel, TakesTheBestThereIsOrLessWhereToldTo) {
  const char* told = std::getenv(sdk::max_cpu_isa_variable);
  const auto most = sdk::cpu_isa_named(told == nullptr ? "" : told).value_or(sdk::CpuIsa::avx512);
  EXPECT_EQ(sdk::cpu_isa(), std::min(most, sdk::best_cpu_isa()));
}

TEST(CpuKernel, NamesAreThoseOfTheList) {
  EXPECT_EQ(sdk::cpu_isa_named("baseline"), sdk::CpuIsa::baseline);
  EXPECT_EQ(sdk::cpu_isa_named("avx2"), sdk::CpuIsa::avx2);
  EXPECT_EQ(sdk::cpu_isa_named("avx512"), sdk::CpuIsa::avx512);
  for (const char* wrong : {"", "AVX2", "avx", "sse4"}) EXPECT_FALSE(sdk::cpu_isa_named(wrong)) << wrong;
}

struct Sum {
  static HEADROOM_KERNEL_BODY void run(const float* values, int64_t count, double* sum) {
    for (int64_t i = 0; i < count; ++i) *sum += static_cast<double>(values[i]);
  }
};

TEST(CpuKernel, RunsTheBody) {
  const float values[] = {1.0F, 2.0F, 4.0F, 8.0F, 16.0F};
  double sum = 0.0;
  sdk::run_kernel<Sum, const float*, int64_t, double*>(values, 5, &sum);
  EXPECT_EQ(sum, 31.0);
}

}  // namespace
}  // namespace headroom
