// Files read through mappings: the same bytes, and a file that ends early is no crash.
#include "arrays/file_map.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arrays/array_session.hpp"
#include "arrays/open_files.hpp"
#include "h5_files.hpp"
#include "memory/crash_site.hpp"
#include "memory/descriptor.hpp"
#include "memory/file_memory.hpp"

namespace headroom {
namespace {

constexpr uint64_t page = 4096;

class FileMapTest : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    ArraySession::of_process()->map_files(true);
  }
  void TearDown() override {
    ArraySession::of_process()->map_files(false);
    TemporaryFolder::TearDown();
  }
};

struct Copy {
  const std::byte* from;
  std::byte* to;
  uint64_t bytes;
};

bool copied(const Copy& copy) {
  return read_mapped(
      [](const void* context) {
        const Copy& wanted = *static_cast<const Copy*>(context);
        std::memcpy(wanted.to, wanted.from, wanted.bytes);
      },
      &copy);
}

TEST_F(FileMapTest, GivesTheBytesAndEndsWithTheFile) {
  const auto path = folder_ / "a";
  std::string text(3 * page, 'a');
  text[2 * page] = 'z';
  write_text(path, text);
  const Descriptor file(::open(path.c_str(), O_RDWR));
  const FileMap map(file.get(), text.size());
  const std::byte* all = map.at(0, text.size());
  if (all == nullptr) GTEST_SKIP() << "what was just written is not in the page cache of this file system";
  std::string read(text.size(), ' ');
  auto* to = reinterpret_cast<std::byte*>(read.data());
  EXPECT_TRUE(copied({all, to, text.size()}));
  EXPECT_EQ(read, text);
  EXPECT_EQ(map.at(0, text.size() + 1), nullptr);
  EXPECT_EQ(map.at(text.size() + 1, 0), nullptr);

  ASSERT_EQ(ftruncate(file.get(), page), 0);
  EXPECT_FALSE(copied({all + page, to, 2 * page}));
  EXPECT_FALSE(copied({all + page, to, 1})) << "the second time too";
  EXPECT_TRUE(copied({all, to, page}));
}

// Its pages would count as held (RssShmem), and data larger than memory.limit would refuse the run every tensor.
TEST_F(FileMapTest, AFileThatLiesInMemoryIsNotMapped) {
  std::string name = "/dev/shm/headroom-test-XXXXXX";
  const Descriptor file(::mkstemp(name.data()));
  if (!file || !lies_in_memory(file.get())) GTEST_SKIP() << "/dev/shm is no tmpfs here";
  ::unlink(name.c_str());
  ASSERT_EQ(ftruncate(file.get(), page), 0);
  EXPECT_FALSE(FileMap(file.get(), page).is_there());
}

TEST_F(FileMapTest, AMapOfNothingGivesNothing) {
  EXPECT_EQ(FileMap().at(0, 1), nullptr);
  EXPECT_FALSE(FileMap().is_there());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;  // whose handlers end the process another way
#else
constexpr bool is_sanitized = false;
#endif

// A page without bytes behind it, touched where nobody expects it, in a process of its own.
TEST_F(FileMapTest, ABusErrorOfOthersIsNotedAndEndsTheProcess) {
  if (is_sanitized) GTEST_SKIP() << "sanitizers handle the signal";
  write_text(folder_ / "empty", "");
  auto* shared = static_cast<char*>(mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  for (const bool sent : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      const CrashNotes notes({shared, page / 2}, {shared + page / 2, page / 2});
      const Descriptor file(::open((folder_ / "empty").c_str(), O_RDONLY));
      const auto* nothing = static_cast<volatile char*>(mmap(nullptr, page, PROT_READ, MAP_SHARED, file.get(), 0));
      if (sent) raise(SIGBUS);
      _exit(nothing[0]);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
    EXPECT_EQ(std::string_view(shared).ends_with("/arrays_test"), !sent) << shared;
    shared[0] = '\0';
  }
  munmap(shared, page);
}

TEST_F(FileMapTest, ArraysReadTheSame) {
  const std::string path = (folder_ / "a.h5").string();
  std::vector<double> values(5000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path);
    write_dataset(file.get(), "plain", H5T_IEEE_F64LE, {5000}, values);
    write_dataset(file.get(), "chunked", H5T_IEEE_F64LE, {5000}, values, {300});
  }
  for (const char* name : {"plain", "chunked"}) {
    OpenArray array(path, name);
    std::vector<double> whole(5000);
    std::vector<float> part(1000);
    EXPECT_EQ(array.read({0}, {5000}, {{HR_WHOLE, {kDLFloat, 64, 1}, whole.data(), 0}}), HR_OK);
    EXPECT_EQ(whole, values);
    EXPECT_EQ(array.read({2500}, {1000}, {{HR_WHOLE, {kDLFloat, 32, 1}, part.data(), 0}}), HR_OK);
    EXPECT_EQ(part[999], 3499.0f);
  }
}

}  // namespace
}  // namespace headroom
