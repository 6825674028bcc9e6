#include "kernel_cgroup.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <sys/types.h>
#include <thread>
#include <unistd.h>

#include "memory/cgroups.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

bool write(const fs::path& path, const std::string& text) {
  std::ofstream stream(path);
  stream << text << std::flush;
  return stream.good();
}

// The number behind a name, or at the beginning where there is none.
int64_t number_in(const fs::path& path, const std::string& name = "") {
  std::ifstream stream(path);
  int64_t number = 0;
  for (std::string word; !name.empty() && stream >> word && word != name;) {
  }
  return stream >> number ? number : 0;
}

}  // namespace

KernelCgroup::KernelCgroup(int64_t limit_bytes, Options options) : why_not_(make(limit_bytes, options)) {}

std::string KernelCgroup::make(int64_t limit_bytes, Options options) {
  const auto folders = memory_cgroup_folders();
  if (folders.empty()) return "no memory cgroup is mounted here";
  const fs::path parent = folders.front();
  v1_ = fs::exists(parent / "memory.limit_in_bytes");
  if (!v1_) write(parent / "cgroup.subtree_control", "+memory");
  static int count = 0;
  const fs::path folder = parent / ("headroom-test-" + std::to_string(getpid()) + "-" + std::to_string(++count));
  std::error_code error;
  if (!fs::create_directory(folder, error)) {
    return "no cgroup can be made in " + parent.string() + ": " + (error ? error.message() : "it is there already");
  }
  folder_ = folder;
  if (!write(folder_ / (v1_ ? "memory.limit_in_bytes" : "memory.max"), std::to_string(limit_bytes)))
    return "no memory limit can be set in " + folder_.string();
  if (!v1_ && options.oom_group) write(folder_ / "memory.oom.group", "1");
  if (options.swap) return "";
  // Where there is no swap there may be no file for it.
  if (v1_ && fs::exists(folder_ / "memory.memsw.limit_in_bytes"))
    write(folder_ / "memory.memsw.limit_in_bytes", std::to_string(limit_bytes));
  if (!v1_ && fs::exists(folder_ / "memory.swap.max")) write(folder_ / "memory.swap.max", "0");
  return "";
}

KernelCgroup::~KernelCgroup() {
  if (folder_.empty()) return;
  for (int i = 0; i < 1000 && rmdir(folder_.c_str()) != 0; ++i) {
    std::ifstream left(folder_ / "cgroup.procs");
    for (pid_t id = 0; left >> id;) kill(id, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

int64_t KernelCgroup::oom_kills() const {
  return number_in(folder_ / (v1_ ? "memory.oom_control" : "memory.events"), "oom_kill");
}

int64_t KernelCgroup::used_bytes() const {
  return number_in(folder_ / (v1_ ? "memory.usage_in_bytes" : "memory.current"));
}

}  // namespace headroom
