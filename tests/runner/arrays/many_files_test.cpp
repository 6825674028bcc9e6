// Many more files than descriptors to read them with. HEADROOM_MANY_FILES says how many (1000).

#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <sys/resource.h>
#include <thread>

#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType i32{kDLInt, 32, 1};
constexpr uint64_t rows = 50;

int file_count() {
  const char* told = std::getenv("HEADROOM_MANY_FILES");
  return told != nullptr ? std::atoi(told) : 1000;
}

int descriptors_in_use() {
  int count = -1;  // the folder's own
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

class ManyFiles : public TemporaryFolder {
 protected:
  // One file from libhdf5, and copies whose first value is their number.
  void write_files() const {
    constexpr int32_t first = 0x5A17C0DE;
    std::vector<int32_t> values(rows);
    for (size_t i = 0; i < rows; ++i) values[i] = i == 0 ? first : static_cast<int32_t>(i);
    {
      const Hdf5Lock lock;
      const Handle file = create_file(path(0));
      write_dataset(file.get(), "x", H5T_STD_I32LE, {rows}, values);
    }
    std::string bytes = read_text(path(0));
    const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&first), sizeof first));
    ASSERT_NE(at, std::string::npos);
    for (int32_t i = 0; i < file_count(); ++i) {
      std::memcpy(bytes.data() + at, &i, sizeof i);
      write_text(path(i), bytes);
    }
  }
  std::string path(int i) const { return (folder_ / (std::to_string(i) + ".h5")).string(); }

  // Reads every file from each of two threads, in orders of their own; "" or what went wrong.
  std::string read_all(const std::vector<std::unique_ptr<OpenArray>>& arrays) const {
    std::string problems[2];
    const auto work = [&](size_t thread) {
      std::vector<int32_t> values(rows);
      for (size_t i = 0; i < arrays.size(); ++i) {
        const size_t at = (i * (thread == 0 ? 7919 : 104729)) % arrays.size();
        const hr_status status = arrays[at]->read({0}, {rows}, {{HR_WHOLE, i32, values.data(), 0}});
        if (status == HR_OK && values[0] == static_cast<int32_t>(at) && values[rows - 1] == rows - 1) continue;
        problems[thread] =
            status == HR_OK ? "file " + std::to_string(at) + " gives others' values" : arrays[at]->message();
        return;
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    return problems[0] + problems[1];
  }
};

// While it lives, this process may hold 256 descriptors.
class FewDescriptors {
 public:
  FewDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{256, before_.rlim_max};
    set_ = setrlimit(RLIMIT_NOFILE, &few) == 0;
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  bool set() const { return set_; }

 private:
  rlimit before_{};
  bool set_ = false;
};

TEST_F(ManyFiles, AreReadWithFewDescriptors) {
  write_files();
  const FewDescriptors few;
  ASSERT_TRUE(few.set());
  const int before = descriptors_in_use();
  std::vector<std::unique_ptr<OpenArray>> arrays;
  for (int i = 0; i < file_count(); ++i) {
    arrays.push_back(std::make_unique<OpenArray>(path(i), "x"));
    ASSERT_EQ(arrays.back()->status(), HR_OK) << arrays.back()->message();
  }
  EXPECT_EQ(read_all(arrays), "");
  EXPECT_LE(descriptors_in_use(), before + 70);  // a quarter of 256, and the process that libhdf5 plans in
}

}  // namespace
}  // namespace headroom
