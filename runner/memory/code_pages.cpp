#include "memory/code_pages.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>

#include "memory/proc_file.hpp"

namespace headroom {

namespace {

constexpr int64_t worthwhile_bytes = int64_t{1} << 20;

struct Mapping {
  uintptr_t begin = 0, end = 0;
  bool is_code = false;
  int64_t resident_bytes = 0, written_bytes = 0;
};

// True: the line begins another mapping.
bool begins(const std::string& line, Mapping& mapping) {
  uintptr_t begin = 0, end = 0;
  std::array<char, 5> access{};
  unsigned long offset = 0, inode = 0;  // NOLINT(google-runtime-int): as sscanf has it
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*x:%*x %lu", &begin, &end, access.data(), &offset, &inode) != 5)
    return false;
  mapping = {.begin = begin, .end = end, .is_code = inode != 0 && std::string_view(access.data()) == "r-xp"};
  return true;
}

int64_t drop(const Mapping& mapping) {
  // Pages that a debugger or the linker wrote to are this process's own: they would be lost.
  if (!mapping.is_code || mapping.written_bytes > 0 || mapping.resident_bytes < worthwhile_bytes) return 0;
  void* const begin = reinterpret_cast<void*>(mapping.begin);  // NOLINT(performance-no-int-to-ptr): the kernel's text
  return madvise(begin, mapping.end - mapping.begin, MADV_DONTNEED) == 0 ? mapping.resident_bytes : 0;
}

}  // namespace

int64_t drop_code_pages() {
  std::ifstream lines("/proc/self/smaps");
  int64_t dropped = 0;
  Mapping mapping;
  for (std::string line; std::getline(lines, line);) {
    const Mapping before = mapping;
    if (begins(line, mapping)) {
      dropped += drop(before);
    } else if (const auto resident = bytes_after(line, "Rss:")) {
      mapping.resident_bytes = *resident;
    } else if (const auto written = bytes_after(line, "Anonymous:")) {
      mapping.written_bytes += *written;
    } else if (const auto swapped = bytes_after(line, "Swap:")) {
      mapping.written_bytes += *swapped;
    }
  }
  return dropped + drop(mapping);
}

}  // namespace headroom
