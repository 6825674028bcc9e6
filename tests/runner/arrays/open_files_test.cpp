// More files than may be open at a time: each read finds its own again, unless that has changed.

#include <memory>
#include <sys/resource.h>

#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType i32{kDLInt, 32, 1};

class OpenFilesTest : public WithFile {};

// Descriptors of files whose name begins so.
int open_files(const std::string& begin) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with(begin) ? 1 : 0;
  }
  return count;
}

// More files than a process may open: each read finds its own again.
TEST_F(OpenFilesTest, ReadsMoreFilesThanItKeepsOpen) {
  constexpr int count = 300;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{256, before.rlim_max};
  {
    const Hdf5Lock lock;
    for (int i = 0; i < count; ++i) {
      const Handle file = create_file(path_ + std::to_string(i));
      write_dataset(file.get(), "x", H5T_STD_I32LE, {1}, std::vector<int32_t>{i});
    }
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::unique_ptr<OpenArray>> arrays;
  for (int i = 0; i < count; ++i) arrays.push_back(std::make_unique<OpenArray>(path_ + std::to_string(i), "x"));
  for (int i = 0; i < 2 * count; ++i) {
    int32_t value = -1;
    ASSERT_EQ(arrays[static_cast<size_t>(i % count)]->read({0}, {1}, {{HR_WHOLE, i32, &value, 0}}), HR_OK);
    EXPECT_EQ(value, i % count);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LE(open_files(path_), 128);
  EXPECT_GT(open_files(path_), 0);
  arrays.clear();
  EXPECT_EQ(open_files(path_), 0) << "a file stays open when none of its arrays is";
}

TEST_F(OpenFilesTest, AFileChangedMeanwhileIsNotReadAsTheOldOne) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", H5T_STD_I32LE, {1}, std::vector<int32_t>{1});
  }
  OpenArray array(path_, "x");
  std::vector<std::unique_ptr<OpenArray>> others;
  {
    const Hdf5Lock lock;
    for (int i = 0; i < 130; ++i) {
      const Handle file = create_file(path_ + std::to_string(i));
      write_dataset(file.get(), "x", H5T_STD_I32LE, {1}, std::vector<int32_t>{i});
    }
  }
  for (int i = 0; i < 130; ++i) others.push_back(std::make_unique<OpenArray>(path_ + std::to_string(i), "x"));
  std::filesystem::rename(path_ + "0", path_);  // while the first is closed for a moment
  int32_t value = -1;
  EXPECT_EQ(array.read({0}, {1}, {{HR_WHOLE, i32, &value, 0}}), HR_IO);
  EXPECT_EQ(array.message(), "'" + path_ + "' was changed or replaced while it was in use; start the run again");
}

}  // namespace
}  // namespace headroom
