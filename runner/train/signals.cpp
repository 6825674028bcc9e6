#include "train/signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <unistd.h>

namespace headroom {

namespace {

std::atomic<int> requested{0};

// At once, because the step or read that is under way may take long.
void answer_interrupt() {
  constexpr std::string_view line = "\nstopping once this step is done; Ctrl-C again ends at once\n";
  const int error = errno;
  // signal-safety(7): write() is allowed in a handler, printf() and the log are not. It may change errno.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  errno = error;
}

void on_signal(int signal) {
  if (signal == SIGINT && requested.load() == SIGINT) _exit(static_cast<int>(Exit::interrupted));
  requested.store(signal);
  if (signal == SIGINT) answer_interrupt();
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  // Reads and writes that are under way go on; plugins need not know EINTR.
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) sigaction(signal, &action, nullptr);
}

Exit stop_requested() {
  switch (requested.load()) {
    case 0:
      return Exit::ok;
    case SIGINT:
      return Exit::interrupted;
    default:
      return Exit::resumable;
  }
}

}  // namespace headroom
