// What happened when and on which thread, as a file in the Chrome trace event format, which ui.perfetto.dev and
// chrome://tracing open. Torch-free.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mutex.hpp"

namespace headroom {

enum class SpanKind : uint8_t { step, phase, plugin_call, operator_call };

// Spans of one thread lie within each other or apart.
class Trace {
 public:
  // Keeps so many calls of operators; of the other kinds there are few, and all are kept. The thread that makes it is
  // the one that takes the steps.
  explicit Trace(size_t most_operator_calls = 500'000);

  // Of the calling thread. Left out, and counted, where there is no room or no memory for it. [any]
  void add(SpanKind kind, std::string_view name, int64_t began_ns, int64_t ended_ns) noexcept EXCLUDES(mutex_);

  int64_t left_out() const EXCLUDES(mutex_);

  // Complete events ("ph": "X") with times in microseconds from the first span's beginning, and a name for each thread.
  // `title` names the process. Error(cannot_write).
  void write(const std::filesystem::path& file, const std::string& title) const EXCLUDES(mutex_);

 private:
  struct Span {
    int64_t began_ns, ended_ns;
    uint32_t name, thread;
    SpanKind kind;
  };
  uint32_t number_of(std::string_view name) REQUIRES(mutex_);

  const size_t most_operator_calls_;
  const uint32_t step_thread_;
  mutable Mutex mutex_;
  // A deque grows without a pause to move what it holds.
  std::deque<Span> spans_ GUARDED_BY(mutex_);
  std::map<std::string, uint32_t, std::less<>> numbers_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);  // by number
  size_t operator_calls_ GUARDED_BY(mutex_) = 0;
  int64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headroom
