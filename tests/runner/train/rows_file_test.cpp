#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <iterator>

#include "../record/temporary_folder.hpp"
#include "error.hpp"
#include "memory/process_memory.hpp"
#include "train/tensor_file.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

class RowsFileTest : public TemporaryFolder {
 protected:
  std::filesystem::path path() const { return folder_ / "rows.safetensors"; }
  size_t files() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
};

TEST_F(RowsFileTest, GivesWhatAtCatGives) {
  const at::Tensor a = torch::arange(60, at::kFloat).view({10, 2, 3}), b = torch::arange(10, at::kLong);
  std::vector<TensorBytes> written;
  {
    RowsFile rows(path(), {"a", "b"});
    for (const auto& [first, end] : {std::pair{0, 4}, {4, 5}, {5, 10}})
      rows.append({a.slice(0, first, end), b.slice(0, first, end)});
    written = rows.write();
  }
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].shape, (std::vector<int64_t>{10, 2, 3}));
  EXPECT_EQ(files(), 1u) << "what stood beside it is gone";
  const SafetensorsFile file(path());
  for (const auto& [name, all] : {std::pair{"a", a}, {"b", b}}) {
    const TensorBytes* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->shape, all.sizes().vec());
    ASSERT_EQ(tensor->data.size(), all.nbytes());
    EXPECT_EQ(std::memcmp(tensor->data.data(), all.const_data_ptr(), all.nbytes()), 0) << name;
  }
}

TEST_F(RowsFileTest, MoreRowsThanAreHeld) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer keeps what was freed";
#endif
  constexpr int64_t mib = 1 << 20;
  RowsFile rows(path(), {"large"});
  const int64_t before = held_bytes();
  int64_t most = 0;
  for (int i = 0; i < 64; ++i) {
    rows.append({torch::full({1, mib / 4}, i, at::kFloat)});
    most = std::max(most, held_bytes() - before);
  }
  EXPECT_EQ(rows.write().at(0).shape, (std::vector<int64_t>{64, mib / 4}));
  most = std::max(most, held_bytes() - before);
  EXPECT_LT(most, 20 * mib) << "of 64 MiB";
  const SafetensorsFile file(path());
  const auto* values = reinterpret_cast<const float*>(file.find("large")->data.data());
  EXPECT_EQ(values[0], 0.0f);
  EXPECT_EQ(values[16 * mib - 1], 63.0f);
}

TEST_F(RowsFileTest, RowsOfAnotherKindAreThePluginsFault) {
  RowsFile rows(path(), {"a"});
  rows.append({torch::zeros({2, 3})});
  for (const at::Tensor& other :
       {torch::zeros({2, 4}), torch::zeros({2, 3}, at::kDouble), torch::zeros({2}), torch::zeros({})}) {
    try {
      rows.append({other});
      FAIL() << other.sizes();
    } catch (const Error& problem) {
      EXPECT_EQ(problem.exit_code(), Exit::plugin);
      EXPECT_THAT(problem.what(), HasSubstr("output 'a'"));
    }
  }
}

// Of two processes, or after one that was killed.
TEST_F(RowsFileTest, TwoOfOneNameDoNotMix) {
  RowsFile first(path(), {"a"}), second(path(), {"a"});
  first.append({torch::zeros({2, 3})});
  second.append({torch::ones({5, 3})});
  EXPECT_EQ(files(), 0u) << "a killed one leaves nothing";
  const auto expect_all = [&](RowsFile& rows, int64_t count, float value) {
    rows.write();
    const SafetensorsFile file(path());
    const TensorBytes* tensor = file.find("a");
    ASSERT_NE(tensor, nullptr);
    ASSERT_EQ(tensor->shape, (std::vector<int64_t>{count, 3}));
    const auto* values = reinterpret_cast<const float*>(tensor->data.data());
    EXPECT_TRUE(std::all_of(values, values + count * 3, [&](float each) { return each == value; }));
  };
  expect_all(first, 2, 0.0f);
  expect_all(second, 5, 1.0f);
}

TEST_F(RowsFileTest, NothingIsLeftOfOneThatIsNotWritten) {
  { RowsFile(path(), {"a", "b"}).append({torch::zeros({2, 3}), torch::zeros({2})}); }
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace headroom
