// Child processes: starting one, passing signals on to it, waiting for its end.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace headroom {

struct ChildOptions {
  bool search_path = false;                   // look a name without '/' up in PATH
  std::vector<std::string> environment = {};  // NAME=value, before ours
  const sigset_t* signal_mask = nullptr;      // nullptr: no signal is blocked
  int stdin_file = -1;                        // -1: ours
  int stdout_file = -1;                       // -1: ours
  int stderr_file = -1;                       // -1: ours
  int kept_file = -1;                         // a descriptor that the child inherits under its number; -1: none
  int64_t data_limit_bytes = 0;               // its RLIMIT_DATA (soft), where ours is larger; 0: ours
  bool apart = false;  // in a process group of its own, without any descriptor of ours beyond the first three
};

// Starts words[0] with the rest as arguments (posix_spawn, never a bare fork), and returns its process id; the caller
// has to wait_for() it. SIGPIPE and SIGXFSZ, which Headroom's programs ignore, have their default action in the child.
// Throws std::system_error with the reason when it cannot be started. [control]
pid_t start_child(std::vector<std::string> words, const ChildOptions& options);

// Whether `child` was started by start_child() of this process and is not waited for yet. [any]
bool is_helper_process(pid_t child);

struct ChildEnd {
  int status = 0;                   // as waitpid() gives it
  int64_t peak_resident_bytes = 0;  // the largest of it and the children it waited for

  bool by_signal() const;
  int signal() const;     // 0: it exited by itself
  int exit_code() const;  // 128 + signal where one ended it, as shells say it
  bool core_dumped() const;
};

// nullopt: `child` runs. Otherwise the signal that ended it, 0 when it exited. Its status stays for wait_for().
std::optional<int> ended_by(pid_t child);

// Waits until `child` ends, and reaps it.
ChildEnd wait_for(pid_t child);

// "SIGKILL", "SIGRTMIN+3".
std::string signal_name(int signal);

// Who sent a signal: "process 77 (slurmstepd)", "the terminal", "the kernel".
struct ReceivedSignal {
  int signal = 0;
  std::string sender;
};

// While it lives, the signals given are blocked and wait in a signalfd instead of acting on this process; those still
// there at its end are dropped. One at a time. [control]
class SignalRelay {
 public:
  explicit SignalRelay(std::initializer_list<int> signals);  // and SIGCHLD, which wakes and is not passed on
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  int file() const { return file_; }                       // poll() it for reading
  const sigset_t& mask_before() const { return before_; }  // what a child should start with
  // The next signal that has come; nullopt: there is none. For a parent of several children. `from_terminal` becomes
  // true when the terminal sent it, to the children as well.
  std::optional<ReceivedSignal> take(bool& from_terminal);
  // Sends all signals that have come to `child`, but for Ctrl-C and Ctrl-\, which the terminal sends it too. SIGHUP is
  // sent as `hangup_as`. last() is the last of them.
  void forward(pid_t child, int hangup_as = SIGHUP);
  const std::optional<ReceivedSignal>& last() const { return last_; }

 private:
  int file_ = -1;
  sigset_t before_{};
  std::optional<ReceivedSignal> last_;
};

}  // namespace headroom
