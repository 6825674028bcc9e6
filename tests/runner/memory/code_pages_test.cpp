#include "memory/code_pages.hpp"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <numeric>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/proc_file.hpp"

namespace headroom {
namespace {

constexpr size_t mib = 1 << 20, size = 8 * mib;

int64_t file_bytes() { return *bytes_after(*read_proc_file("/proc/self/status"), "RssFile:"); }

// Of a file of its own, as a library's code is.
class Code {
 public:
  explicit Code(unsigned char filling) {
    std::string path = "/tmp/headroom-code-XXXXXX";
    const int file = mkstemp(path.data());
    std::filesystem::remove(path);
    const std::string text(size, static_cast<char>(filling));
    EXPECT_EQ(write(file, text.data(), size), static_cast<ssize_t>(size));
    data_ = static_cast<unsigned char*>(mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0));
    EXPECT_NE(data_, MAP_FAILED);
    close(file);
  }
  ~Code() { munmap(data_, size); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  std::span<unsigned char> bytes() { return {data_, size}; }
  size_t sum() { return std::accumulate(data_, data_ + size, size_t{0}); }
  void write_first(unsigned char value) {
    mprotect(data_, size, PROT_READ | PROT_WRITE);
    data_[0] = value;
    mprotect(data_, size, PROT_READ | PROT_EXEC);
  }

 private:
  unsigned char* data_ = nullptr;
};

TEST(CodePages, GoAndComeBack) {
  Code code(3);
  ASSERT_EQ(code.sum(), 3 * size);
  const int64_t before = file_bytes();
  EXPECT_GE(drop_code_pages(), static_cast<int64_t>(size));
  EXPECT_LE(file_bytes(), before - static_cast<int64_t>(size - mib));
  EXPECT_EQ(code.sum(), 3 * size);
}

// As a debugger's breakpoints are, and what a linker has filled in.
TEST(CodePages, StayWhereSomebodyWroteToThem) {
  Code code(3);
  ASSERT_EQ(code.sum(), 3 * size);
  code.write_first(7);
  drop_code_pages();
  EXPECT_EQ(code.bytes()[0], 7);
}

}  // namespace
}  // namespace headroom
