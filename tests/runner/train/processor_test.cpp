#include <ATen/Version.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "headroom/sdk/cpu_kernel.hpp"
#include "train/compute.hpp"

namespace headroom {
namespace {

class Processor : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_ / "proc"); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string text_of(const std::string& cpuinfo) {
    std::ofstream(root_ / "proc/cpuinfo") << cpuinfo;
    return processor_text(root_.string() + "/");
  }

  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("processor-test-" + std::to_string(getpid()));
};

TEST_F(Processor, NameAndInstructionSet) {
  const std::string text =
      text_of("processor\t: 0\nmodel name\t: Some CPU: 2 GHz\nflags\t\t: fpu avx2\nmodel name\t: B\n");
  EXPECT_TRUE(text.starts_with("Some CPU: 2 GHz, " + at::get_cpu_capability())) << text;
  EXPECT_EQ(text.find(", kernels ") != std::string::npos, sdk::cpu_isa() < sdk::best_cpu_isa()) << text;
}

// As Arm's kernels write it, and where there is no such file.
TEST_F(Processor, TheArchitectureWhereThereIsNoName) {
  const std::string arm = text_of("processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n");
  EXPECT_FALSE(arm.starts_with(",")) << arm;
  EXPECT_EQ(processor_text((root_ / "nowhere/").string()), arm);
}

}  // namespace
}  // namespace headroom
