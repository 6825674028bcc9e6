// How long the functions of plugins take, on the thread of the steps and on reader threads. Torch-free.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "mutex.hpp"
#include "profile/trace.hpp"

namespace headroom {

struct PluginCallTime {
  std::string plugin, entry;
  bool in_step = false;  // on the thread that takes the steps
  int64_t calls = 0, ns = 0;
};

// Records PluginCall on all threads while it lives. One object at a time. [control] except for add().
class PluginCallTimes {
 public:
  // Make it on the thread that takes the steps. `trace` may be NULL.
  explicit PluginCallTimes(Trace* trace);
  ~PluginCallTimes();
  PluginCallTimes(const PluginCallTimes&) = delete;
  PluginCallTimes& operator=(const PluginCallTimes&) = delete;

  // Whether calls that end from here on count; initially false.
  void count(bool counts) { counts_ = counts; }
  // First those on the step's thread; by decreasing time.
  std::vector<PluginCallTime> by_time() const EXCLUDES(mutex_);

  void add(std::string_view plugin, std::string_view entry, int64_t began_ns, int64_t ended_ns) noexcept
      EXCLUDES(mutex_);

 private:
  struct Sums {
    int64_t calls = 0, ns = 0;
  };
  Trace* const trace_;
  const std::thread::id step_thread_;
  std::atomic<bool> counts_{false};
  mutable Mutex mutex_;
  std::map<std::tuple<bool, std::string, std::string>, Sums> sums_ GUARDED_BY(mutex_);  // in_step, plugin, entry
};

}  // namespace headroom
