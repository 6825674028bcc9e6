#include "train/inert_weights.hpp"

#include <ATen/DLConvertor.h>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "../record/temporary_folder.hpp"
#include "record/safetensors.hpp"

namespace headroom {
namespace {

constexpr int64_t mebibyte = int64_t{1} << 20;

// Three tensors, of which the second and third are inert: 16 MiB, and 3 floats that end within a page.
class InertWeights : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      parameters_.push_back({.name = std::to_string(i), .group = "", .inert = i > 0, .tensor = &tensors_[i]});
      tensors_[i].requires_grad_(i == 0);
    }
  }
  // To the disk. A test that is skipped goes no further.
  void move() {
    said_ = move_inert_weights_to_disk(parameters_);
    if (said_.find("no local disk takes them") != std::string::npos) GTEST_SKIP() << said_;
  }
  std::string said_;
  std::array<at::Tensor, 3> tensors_{at::randn({100}), at::randn({4, mebibyte}), at::randn({3})};
  const std::array<at::Tensor, 3> values_{tensors_[0].detach().clone(), tensors_[1].clone(), tensors_[2].clone()};
  std::vector<Parameter> parameters_;
};

// What files have in this process's memory.
int64_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stoll(line.substr(8)) * 1024;
  }
  return 0;
}

// Whether /proc/self/maps has `data` in a file, which has no name any more.
bool lies_in_a_file(const void* data) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (std::string line; std::getline(maps, line);) {
    size_t end = 0;
    const uintptr_t from = std::stoull(line, &end, 16), to = std::stoull(line.substr(end + 1), nullptr, 16);
    if (address >= from && address < to) return line.ends_with("(deleted)");
  }
  return false;
}

TEST_F(InertWeights, LieInAFileAndAreTheSame) {
  move();
  if (IsSkipped()) return;
  EXPECT_EQ(said_, "memory: 16.0 MiB of weights that nothing computes with are kept on the disk");
  for (size_t i = 0; i < tensors_.size(); ++i) EXPECT_EQ(lies_in_a_file(tensors_[i].const_data_ptr()), i > 0) << i;
  for (size_t i = 0; i < tensors_.size(); ++i) EXPECT_TRUE(tensors_[i].equal(values_[i])) << i;
  for (size_t i = 0; i < tensors_.size(); ++i)
    EXPECT_EQ(parameters_[i].pages_of_file, i > 0 ? tensors_[i].const_data_ptr() : nullptr) << i;
  EXPECT_TRUE(tensors_[0].requires_grad() && tensors_[1].is_leaf());
  // Where they are already.
  EXPECT_EQ(move_inert_weights_to_disk(parameters_), "");
}

TEST_F(InertWeights, AreWrittenAsBefore) {
  move();
  if (IsSkipped()) return;
  tensors_[1].add_(1.0);
  const int64_t before = resident_file_bytes();
  release_pages(parameters_[1]);
  EXPECT_LT(resident_file_bytes(), before - 12 * mebibyte);
  EXPECT_TRUE(tensors_[1].equal(values_[1] + 1.0));
  EXPECT_TRUE(tensors_[2].equal(values_[2]));
}

// A checkpoint reads them, and does not leave them in memory.
TEST_F(InertWeights, AreReleasedAsTheyAreWrittenToAFile) {
  move();
  if (IsSkipped()) return;
  const int64_t before = resident_file_bytes();
  const TensorBytes bytes{"1",
                          at::getDLDataType(tensors_[1]),
                          tensors_[1].sizes().vec(),
                          {static_cast<const std::byte*>(tensors_[1].const_data_ptr()), tensors_[1].nbytes()},
                          /*in_file=*/true};
  write_safetensors(folder_ / "file", std::span(&bytes, 1));
  EXPECT_LT(resident_file_bytes(), before + 4 * mebibyte);
  const SafetensorsFile file(folder_ / "file");
  const auto data = file.find("1")->data;
  EXPECT_EQ(std::memcmp(data.data(), values_[1].const_data_ptr(), data.size()), 0);
}

TEST_F(InertWeights, FewStayInMemory) {
  EXPECT_EQ(move_inert_weights_to_disk(parameters_, 17 * mebibyte), "");
  EXPECT_EQ(parameters_[1].pages_of_file, nullptr);
}

TEST_F(InertWeights, StayInMemoryWhereTheDiskTakesNoMore) {
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit little { static_cast<rlim_t>(mebibyte), before.rlim_max };
  setrlimit(RLIMIT_FSIZE, &little);
  const std::string said = move_inert_weights_to_disk(parameters_);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(said.find("16.0 MiB of weights that nothing computes with stay in memory"), std::string::npos) << said;
  EXPECT_TRUE(tensors_[1].equal(values_[1]));
}

}  // namespace
}  // namespace headroom
