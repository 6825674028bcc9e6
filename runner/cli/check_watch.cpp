#include "cli/check_watch.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

#include "error.hpp"
#include "memory/crash_site.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array crashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

// Runs inside a signal handler: no allocation, no lock, no stdio.
void on_crash(int signal) {
  std::array<char, 120> call{};
  PluginCall::write(PluginCall::current(), call);
  if (call[0] == '\0') {  // not in a plugin's call: as without this handler
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  say("FAIL  [plugin] ");
  say(std::string_view(call.data(), std::strlen(call.data())));
  say(": the plugin crashed there (");
  say(signal == SIGSEGV ? "SIGSEGV" : signal == SIGBUS ? "SIGBUS" : signal == SIGFPE ? "SIGFPE" : "SIGILL");
  say("); run this check under gdb, or build the plugin with -fsanitize=address, to see where\n");
  _exit(static_cast<int>(Exit::plugin));
}

void handle(int signal, void (*with)(int), void (*instead_of)(int)) {
  struct sigaction before {};
  if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != instead_of) return;
  struct sigaction action {};
  action.sa_handler = with;
  action.sa_flags = SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

// Another thread writes it, at every call; what is read stood there for long.
[[gnu::no_sanitize("thread")]] std::string read_call(const std::array<char, 120>& call) {
  std::string text;
  for (size_t i = 0; i < call.size() && call[i] != '\0'; ++i) text += call[i];
  return text;
}

}  // namespace

CheckWatch::CheckWatch(const StallReport& stall) {
  PluginCall::keep_in(call_);
  for (const int signal : crashes) handle(signal, on_crash, SIG_DFL);
  if (stall.tell) thread_ = std::thread([this, stall] { look(stall); });
}

CheckWatch::~CheckWatch() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  ends_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (const int signal : crashes) handle(signal, SIG_DFL, on_crash);
  PluginCall::keep_in({});
}

void CheckWatch::look(const StallReport& stall) {
  const MutexLock lock(mutex_);
  uint64_t seen = PluginCall::changes();
  Clock::time_point since = Clock::now();
  std::chrono::milliseconds tell_at = stall.after;
  for (; !ended_; ends_.wait_until(mutex_, Clock::now() + std::chrono::milliseconds(100))) {
    const uint64_t now = PluginCall::changes();
    if (now != seen) {
      seen = now;
      since = Clock::now();
      tell_at = stall.after;
    }
    const auto still = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - since);
    if (still < tell_at) continue;
    tell_at = 2 * still;
    const std::string call = read_call(call_);
    if (!call.empty())
      stall.tell("the check stands still for " + std::to_string(still.count() / 1000) + " s: '" + call +
                 "' has not returned");
  }
}

}  // namespace headroom
