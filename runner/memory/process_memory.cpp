#include "memory/process_memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"

namespace headroom {

namespace {

std::atomic<int64_t> children{0};

// Opened once: a read from offset 0 gives fresh figures, and needs no descriptor when there are none left.
int status_file() {
  static const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  return file;
}

// The file's lines, of which some may be very long (those of thousands of groups), without an allocation: what does not
// fit the block is left out of its line.
class StatusLines {
 public:
  // False at the end.
  bool next(std::string_view& line) {
    size_t length = 0;
    for (;;) {
      if (at_ == filled_ && !fill()) return false;
      const char letter = block_[at_++];
      if (letter == '\n') break;
      if (length < line_.size()) line_[length++] = letter;
    }
    line = {line_.data(), length};
    return true;
  }

 private:
  bool fill() {
    const ssize_t got = pread(status_file(), block_.data(), block_.size(), offset_);
    if (got <= 0) return false;
    offset_ += got;
    at_ = 0;
    filled_ = static_cast<size_t>(got);
    return true;
  }

  std::array<char, 4096> block_;
  // A longer line is cut: those that are looked for are shorter.
  std::array<char, 96> line_;
  size_t at_ = 0, filled_ = 0;
  off_t offset_ = 0;
};

// "RssAnon:\t    148 kB"
int64_t bytes_in(std::string_view line, std::string_view key) {
  // strtoll() needs a zero at the end, and the line has none.
  std::array<char, 32> number{};
  const std::string_view text = line.substr(key.size());
  std::memcpy(number.data(), text.data(), std::min(text.size(), number.size() - 1));
  return std::strtoll(number.data(), nullptr, 10) * 1024;
}

}  // namespace

int64_t children_bytes() { return children.load(std::memory_order_relaxed); }
void set_children_bytes(int64_t bytes) { children.store(bytes, std::memory_order_relaxed); }

int64_t held_bytes() { return own_held_bytes() + children_bytes(); }

int64_t own_held_bytes() {
  constexpr std::string_view anonymous = "RssAnon:", shared = "RssShmem:";
  StatusLines lines;
  int64_t bytes = 0;
  for (std::string_view line; lines.next(line);) {
    if (line.starts_with(anonymous)) bytes += bytes_in(line, anonymous);
    if (!line.starts_with(shared)) continue;
    return bytes + bytes_in(line, shared);  // stands behind the other
  }
  return bytes;
}

namespace {

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

MemoryUsage read_memory_usage(const std::string& root) {
  const std::filesystem::path proc = std::filesystem::path(root) / "proc";
  const std::string status = read_proc_file(proc / "self/status").value_or("");
  const std::string system = read_proc_file(proc / "meminfo").value_or("");
  const auto bytes = [](const std::string& text, const char* key) { return bytes_after(text, key).value_or(0); };
  MemoryUsage usage;
  usage.process_bytes = bytes(status, "RssAnon:") + bytes(status, "RssShmem:") + bytes(status, "RssFile:");
  usage.system_total_bytes = bytes(system, "MemTotal:");
  usage.system_used_bytes = std::max<int64_t>(usage.system_total_bytes - bytes(system, "MemAvailable:"), 0);

  for (const MemoryCgroup& cgroup : memory_cgroups(root)) {
    if (!cgroup.limit_bytes) continue;
    // Of two equal limits the fuller one binds.
    const bool smaller = usage.system_total_bytes == 0 || *cgroup.limit_bytes < usage.system_total_bytes;
    const bool fuller = usage.total_is_cgroup && *cgroup.limit_bytes == usage.system_total_bytes &&
                        cgroup.used_bytes > usage.system_used_bytes;
    if (!smaller && !fuller) continue;
    usage.system_total_bytes = *cgroup.limit_bytes;
    usage.system_used_bytes = cgroup.used_bytes;
    usage.total_is_cgroup = true;
  }
  return usage;
}

std::string memory_line(const std::string& label, const MemoryUsage& usage) {
  constexpr double mb = 1 << 20, gb = 1 << 30;
  char text[160];
  std::snprintf(text, sizeof text, "Memory - Process: %.1fMB (%.1f%%), System: %.1f/%.1fGB (%.1f%%)",
                static_cast<double>(usage.process_bytes) / mb, percent(usage.process_bytes, usage.system_total_bytes),
                static_cast<double>(usage.system_used_bytes) / gb, static_cast<double>(usage.system_total_bytes) / gb,
                percent(usage.system_used_bytes, usage.system_total_bytes));
  const std::string line = "[" + label + "] " + text;
  if (!usage.device) return line;
  std::snprintf(text, sizeof text, ", GPU: %.1fGB allocated, %.1fGB reserved",
                static_cast<double>(usage.device->allocated_bytes) / gb,
                static_cast<double>(usage.device->reserved_bytes) / gb);
  return line + text;
}

}  // namespace headroom
