#include "train/signals.hpp"

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace headroom {

namespace {

std::atomic<int> requested{0};

void on_signal(int signal) {
  if (signal == SIGINT && requested.load() == SIGINT) _exit(static_cast<int>(Exit::interrupted));
  requested.store(signal);
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
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
