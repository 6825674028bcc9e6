#include "memory/process_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"

namespace headroom {
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
