// How long LibTorch's operators take, by name: at::RecordFunction's callbacks, which every operator and every node of
// backward looks for. What a plugin computes with kernels of its own is no operator; RECORD_USER_SCOPE names it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mutex.hpp"
#include "profile/trace.hpp"

namespace headroom {

struct OperatorTime {
  std::string name;
  int64_t calls = 0;
  int64_t self_ns = 0;   // without the operators that it calls
  int64_t total_ns = 0;  // with them; where it calls itself, once
};

// Listens while it lives, to the thread that makes it and to those that autograd works on for it; one at a time. On a
// GPU an operator's time is what giving out its work takes. [compute] but for add().
class OperatorTimes {
 public:
  explicit OperatorTimes(Trace* trace);  // may be NULL
  ~OperatorTimes();
  OperatorTimes(const OperatorTimes&) = delete;
  OperatorTimes& operator=(const OperatorTimes&) = delete;

  // Whether operators that end from here on count. At first none does.
  void count(bool counts) { counts_ = counts; }
  int64_t self_ns() const { return self_ns_; }  // of all of them so far
  std::vector<OperatorTime> by_self_time() const EXCLUDES(mutex_);

  struct Call {
    int64_t began_ns = 0, ended_ns = 0;
    int64_t within_ns = 0;     // of the operators that it called
    bool is_outermost = true;  // of its name
  };
  void add(std::string_view name, const Call& call) noexcept EXCLUDES(mutex_);

 private:
  struct Sums {
    int64_t calls = 0, self_ns = 0, total_ns = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  Trace* const trace_;
  uint64_t callback_ = 0;
  std::atomic<bool> counts_{false};
  std::atomic<int64_t> self_ns_{0};
  mutable Mutex mutex_;
  std::unordered_map<std::string, Sums, Hash, std::equal_to<>> sums_ GUARDED_BY(mutex_);
};

}  // namespace headroom
