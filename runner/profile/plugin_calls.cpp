#include "profile/plugin_calls.hpp"

#include <algorithm>

#include "memory/crash_site.hpp"

namespace headroom {

namespace {

// A reader's call may end while the listener is destroyed; under the mutex it is either whole or gone.
Mutex call_listener_mutex;
PluginCallTimes* call_listener GUARDED_BY(call_listener_mutex) = nullptr;

void listen_to(PluginCallTimes* times) {
  const MutexLock lock(call_listener_mutex);
  call_listener = times;
}

void on_call(std::string_view plugin, std::string_view entry, int64_t began_ns, int64_t ended_ns) noexcept {
  const MutexLock lock(call_listener_mutex);
  if (call_listener != nullptr) call_listener->add(plugin, entry, began_ns, ended_ns);
}

}  // namespace

PluginCallTimes::PluginCallTimes(Trace* trace) : trace_(trace), step_thread_(std::this_thread::get_id()) {
  listen_to(this);
  PluginCall::tell(on_call);
}

PluginCallTimes::~PluginCallTimes() {
  PluginCall::tell(nullptr);
  listen_to(nullptr);
}

void PluginCallTimes::add(std::string_view plugin, std::string_view entry, int64_t began_ns,
                          int64_t ended_ns) noexcept {
  if (!counts_) return;
  try {
    const bool in_step = std::this_thread::get_id() == step_thread_;
    if (trace_ != nullptr) {
      trace_->add(SpanKind::plugin_call, std::string(plugin) + " " + std::string(entry), began_ns, ended_ns);
    }
    const MutexLock lock(mutex_);
    Sums& sums = sums_[{in_step, std::string(plugin), std::string(entry)}];
    ++sums.calls;
    sums.ns += ended_ns - began_ns;
  } catch (...) {  // no memory, which the run needs more than the profile does
  }
}

std::vector<PluginCallTime> PluginCallTimes::by_time() const {
  std::vector<PluginCallTime> times;
  const MutexLock lock(mutex_);
  for (const auto& [key, sums] : sums_) {
    const auto& [in_step, plugin, entry] = key;
    times.push_back({plugin, entry, in_step, sums.calls, sums.ns});
  }
  std::ranges::sort(times, [](const PluginCallTime& a, const PluginCallTime& b) {
    return std::tie(a.in_step, a.ns) > std::tie(b.in_step, b.ns);
  });
  return times;
}

}  // namespace headroom
