// How long LibTorch's operators take, by name. It uses at::RecordFunction, whose callbacks run for every operator and
// every node of backward. A plugin's own kernels are no operators; RECORD_USER_SCOPE gives them a name.
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
  int64_t total_ns = 0;  // with them; recursive calls count once
};

// Records, while it lives, operators on the thread that makes it and on autograd's threads that work for it. One object
// at a time. On a GPU, an operator's time is that of launching its work. [compute] except for add().
class OperatorTimes {
 public:
  explicit OperatorTimes(Trace* trace);  // may be NULL
  ~OperatorTimes();
  OperatorTimes(const OperatorTimes&) = delete;
  OperatorTimes& operator=(const OperatorTimes&) = delete;

  // Whether operators that end from here on count; initially false.
  void count(bool counts) { counts_ = counts; }
  int64_t self_ns() const { return self_ns_; }  // of all operators so far
  std::vector<OperatorTime> by_self_time() const EXCLUDES(mutex_);

  struct Call {
    int64_t began_ns = 0, ended_ns = 0;
    int64_t within_ns = 0;     // of the operators that it called
    bool is_outermost = true;  // of the calls with its name
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
