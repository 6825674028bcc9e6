// Changes RLIMIT_DATA of this process for a while. The kernel counts writable mappings, also pages that are never
// written.
#pragma once

#include <algorithm>
#include <sys/resource.h>

namespace headroom {

inline rlim_t soft_data_limit() {
  rlimit now{};
  getrlimit(RLIMIT_DATA, &now);
  return now.rlim_cur;
}

// While it lives, this process and children that it starts may map `soft_bytes`, as far as the hard limit allows.
// Afterwards the soft limit is as before. One thread at a time. [control]
class ScopedDataLimit {
 public:
  explicit ScopedDataLimit(rlim_t soft_bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit now{.rlim_cur = std::min(soft_bytes, before_.rlim_max), .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_DATA, &now);
  }
  ~ScopedDataLimit() { setrlimit(RLIMIT_DATA, &before_); }
  ScopedDataLimit(const ScopedDataLimit&) = delete;
  ScopedDataLimit& operator=(const ScopedDataLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace headroom
