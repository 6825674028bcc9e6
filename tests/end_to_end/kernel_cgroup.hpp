// A memory cgroup made for a test, v1 or v2: the kernel's own judge over whatever runs in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headroom {

class KernelCgroup {
 public:
  struct Options {
    bool swap = false;       // may use the machine's swap beside its limit
    bool oom_group = false;  // v2: a kill takes all of its processes
  };
  // Below this process's own. Needs root, or a delegated cgroup; why_not() says what was missing.
  explicit KernelCgroup(int64_t limit_bytes) : KernelCgroup(limit_bytes, Options()) {}
  KernelCgroup(int64_t limit_bytes, Options options);
  ~KernelCgroup();  // ends what is left in it
  KernelCgroup(const KernelCgroup&) = delete;
  KernelCgroup& operator=(const KernelCgroup&) = delete;

  const std::string& why_not() const { return why_not_; }  // "": it is there, and limited
  const std::filesystem::path& folder() const { return folder_; }
  int64_t oom_kills() const;
  int64_t used_bytes() const;

 private:
  std::string make(int64_t limit_bytes, Options options);

  std::filesystem::path folder_;
  bool v1_ = false;
  std::string why_not_;
};

}  // namespace headroom
