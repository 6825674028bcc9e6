#include "memory/signal_relay.hpp"

#include <cerrno>
#include <cstring>
#include <sys/signalfd.h>
#include <unistd.h>

#include "error.hpp"
#include "memory/process_tree.hpp"

namespace headroom {

namespace {

bool is_from_terminal(const signalfd_siginfo& info) {
  return info.ssi_code == SI_KERNEL &&
         (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT || info.ssi_signo == SIGHUP);
}

std::string sender_of(const signalfd_siginfo& info) {
  if (is_from_terminal(info)) return "the terminal";
  if (info.ssi_code == SI_KERNEL || info.ssi_pid == 0) return "the kernel, or from outside of this container";
  const std::string name = process_name(info.ssi_pid);
  return "process " + std::to_string(info.ssi_pid) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

SignalRelay::SignalRelay(std::initializer_list<int> signals) {
  std::signal(SIGCHLD, SIG_DFL);  // whoever started us may ignore it, and exit codes with it
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : signals) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, &before_);
  file_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (file_ < 0) {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    throw Error(Exit::bug, "supervisor", std::string("cannot wait for signals: ") + std::strerror(errno));
  }
}

SignalRelay::~SignalRelay() {
  signalfd_siginfo late;  // they came for a child that has ended: what is left to do is told to the end
  while (read(file_, &late, sizeof late) == sizeof late) {
  }
  close(file_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<ReceivedSignal> SignalRelay::take(bool& from_terminal) {
  signalfd_siginfo info;
  while (read(file_, &info, sizeof info) == sizeof info) {
    if (static_cast<int>(info.ssi_signo) == SIGCHLD) continue;
    from_terminal = is_from_terminal(info);
    return last_ = {static_cast<int>(info.ssi_signo), sender_of(info)};
  }
  return std::nullopt;
}

void SignalRelay::forward(pid_t child, int hangup_as) {
  bool from_terminal = false;
  while (const auto received = take(from_terminal)) {
    const int passed_on = received->signal == SIGHUP ? hangup_as : received->signal;
    if (!from_terminal || passed_on != received->signal) kill(child, passed_on);
  }
}

}  // namespace headroom
