#include "profile/trace.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

constexpr size_t written_at_once_bytes = 1 << 16;

uint32_t this_thread_number() {
  static std::atomic<uint32_t> last{0};
  thread_local const uint32_t number = ++last;
  return number;
}

// In the order of SpanKind.
constexpr std::array<std::string_view, 4> categories = {"step", "phase", "plugin", "operator"};

std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }

// Every digit, so that spans which touch still touch: "1234.056".
std::string microseconds(int64_t ns) {
  std::string digits = std::to_string(ns % 1000);
  digits.insert(0, 3 - digits.size(), '0');
  return std::to_string(ns / 1000) + "." + digits;
}

std::string metadata(const char* what, uint32_t thread, const std::string& name) {
  return R"({"ph":"M","pid":1,"tid":)" + std::to_string(thread) + R"(,"name":")" + what + R"(","args":{"name":)" +
         quoted(name) + "}}";
}

}  // namespace

Trace::Trace(size_t most_operator_calls)
    : most_operator_calls_(most_operator_calls), step_thread_(this_thread_number()) {}

uint32_t Trace::number_of(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(name, number);
  return number;
}

void Trace::add(SpanKind kind, std::string_view name, int64_t began_ns, int64_t ended_ns) noexcept {
  const uint32_t thread = this_thread_number();
  const MutexLock lock(mutex_);
  if (kind == SpanKind::operator_call && operator_calls_ >= most_operator_calls_) {
    ++left_out_;
    return;
  }
  try {
    spans_.push_back({began_ns, ended_ns, number_of(name), thread, kind});
    if (kind == SpanKind::operator_call) ++operator_calls_;
  } catch (...) {  // no memory, which the run needs more than the trace does
    ++left_out_;
  }
}

int64_t Trace::left_out() const {
  const MutexLock lock(mutex_);
  return left_out_;
}

void Trace::write(const std::filesystem::path& path, const std::string& title) const {
  const MutexLock lock(mutex_);
  OutputFile file(path);
  std::string text = R"({"displayTimeUnit":"ms","otherData":{"left_out":)" + std::to_string(left_out_) +
                     "},\n\"traceEvents\":[\n" + metadata("process_name", step_thread_, title);
  std::set<uint32_t> threads = {step_thread_};
  int64_t first_ns = INT64_MAX;
  for (const Span& span : spans_) {
    threads.insert(span.thread);
    first_ns = std::min(first_ns, span.began_ns);
  }
  for (const uint32_t thread : threads) {
    const std::string name = thread == step_thread_ ? "steps" : "thread " + std::to_string(thread);
    text += ",\n" + metadata("thread_name", thread, name);
  }
  std::vector<std::string> names;
  for (const std::string& name : names_) names.push_back(quoted(name));
  for (const Span& span : spans_) {
    text += ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":" + std::to_string(span.thread) + ",\"cat\":\"";
    text += categories[static_cast<size_t>(span.kind)];
    text += "\",\"name\":" + names[span.name] + ",\"ts\":" + microseconds(span.began_ns - first_ns) +
            ",\"dur\":" + microseconds(span.ended_ns - span.began_ns) + "}";
    if (text.size() < written_at_once_bytes) continue;
    file.write(text);
    text.clear();
  }
  file.write(text + "\n]}\n");
  file.finish();
}

}  // namespace headroom
