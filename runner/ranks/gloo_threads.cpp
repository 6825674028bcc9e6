#include "ranks/gloo_threads.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace headroom {

namespace {

namespace fs = std::filesystem;

// The names that LibTorch and Gloo give them.
constexpr const char* collectives_name = "pt_gloo_runloop";
constexpr const char* connections_name = "gloo_tcp_loop";

struct ThreadState {
  bool sleeps = false;
  int64_t switches = 0;  // to another thread, of its own will or not
};

// By thread id. /proc/self/task/ID/status is of proc(5).
std::map<std::string, ThreadState> threads_named(const std::string& name) {
  std::map<std::string, ThreadState> found;
  std::error_code error;
  for (fs::directory_iterator task("/proc/self/task", error), end; !error && task != end; task.increment(error)) {
    std::ifstream status(task->path() / "status");
    std::string own_name;
    ThreadState state;
    for (std::string key; status >> key;) {
      if (key == "Name:") status >> own_name;
      if (key == "State:") {
        std::string letter;
        status >> letter;
        state.sleeps = letter == "S";
      }
      int64_t switches = 0;
      if (key.ends_with("voluntary_ctxt_switches:") && status >> switches) state.switches += switches;
    }
    if (own_name == name) found[task->path().filename()] = state;
  }
  return found;
}

}  // namespace

bool gloo_has_nothing_to_do(std::chrono::milliseconds time) {
  const auto collectives = threads_named(collectives_name), connections = threads_named(connections_name);
  std::this_thread::sleep_for(time);
  const auto collectives_now = threads_named(collectives_name), connections_now = threads_named(connections_name);
  if (collectives.empty() || connections.empty()) return false;
  for (const auto& [id, state] : collectives_now) {
    const auto before = collectives.find(id);
    if (before == collectives.end() || !state.sleeps || state.switches != before->second.switches) return false;
  }
  for (const auto& [id, state] : connections_now) {
    const auto before = connections.find(id);
    // It wakes every 10 ms. The second time it has seen all that there was at the first look.
    if (before == connections.end() || state.switches < before->second.switches + 3) return false;
  }
  return true;
}

}  // namespace headroom
