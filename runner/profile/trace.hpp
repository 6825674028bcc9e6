// Records what happened when and on which thread, and writes a file in the Chrome trace event format, which
// ui.perfetto.dev and chrome://tracing open. Torch-free.
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

// Spans of one thread are nested or disjoint.
class Trace {
 public:
  // Keeps at most `most_operator_calls` operator calls, and all spans of other kinds, which are few. Make it on the
  // thread that takes the steps.
  explicit Trace(size_t most_operator_calls = 500'000);

  // Adds a span of the calling thread. Drops and counts it where there is no room or no memory. [any]
  void add(SpanKind kind, std::string_view name, int64_t began_ns, int64_t ended_ns) noexcept EXCLUDES(mutex_);

  int64_t left_out() const EXCLUDES(mutex_);

  // Writes complete events ("ph": "X") with times in microseconds since the beginning of the first span, and a name for
  // each thread. `title` names the process. Error(cannot_write).
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
  // A deque, because it grows without moving its elements.
  std::deque<Span> spans_ GUARDED_BY(mutex_);
  std::map<std::string, uint32_t, std::less<>> numbers_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);  // by number
  size_t operator_calls_ GUARDED_BY(mutex_) = 0;
  int64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headroom
