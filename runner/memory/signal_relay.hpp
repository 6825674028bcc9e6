// Signals that a supervisor gets and its child should have.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace headroom {

// Who sent a signal: "process 77 (slurmstepd)", "the terminal", "the kernel".
struct ReceivedSignal {
  int signal = 0;
  std::string sender;
};

// From its making to its end the signals wait in a file instead of acting on this process. One at a time. [control]
class SignalRelay {
 public:
  explicit SignalRelay(std::initializer_list<int> signals);  // and SIGCHLD, which wakes and is not passed on
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  int file() const { return file_; }                       // poll() it for reading
  const sigset_t& mask_before() const { return before_; }  // what a child should start with
  // What has come, one by one, for who has more than one child: nullopt when that was all. `from_terminal`: the
  // children have got it too.
  std::optional<ReceivedSignal> take(bool& from_terminal);
  // Passes on what has come. The terminal's own (Ctrl-C, Ctrl-\) have reached the child already and are not sent twice.
  // `hangup_as` stands for SIGHUP. Remembers the last of them.
  void forward(pid_t child, int hangup_as = SIGHUP);
  const std::optional<ReceivedSignal>& last() const { return last_; }

 private:
  int file_ = -1;
  sigset_t before_{};
  std::optional<ReceivedSignal> last_;
};

}  // namespace headroom
