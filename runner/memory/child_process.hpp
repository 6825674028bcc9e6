// Starting a program as a child, what becomes of it, and signals that its parent gets and it should have.
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
  int kept_file = -1;                         // a descriptor that the child keeps, under its number; -1: none
  int64_t data_limit_bytes = 0;               // its RLIMIT_DATA (soft), where ours is larger; 0: ours
  bool apart = false;  // in a process group of its own, without any descriptor of ours beyond the first three
};

// posix_spawn, never a bare fork: words[0] is the program. SIGPIPE and SIGXFSZ, which Headroom's programs ignore, do in
// the child what they do by default. Throws std::system_error with the reason it cannot be started.
pid_t start_child(std::vector<std::string> words, const ChildOptions& options);

struct ChildEnd {
  int status = 0;                   // as waitpid() gives it
  int64_t peak_resident_bytes = 0;  // the largest of it and the children it waited for

  bool by_signal() const;
  int signal() const;     // 0: it exited by itself
  int exit_code() const;  // 128 + signal where one ended it, as shells say it
  bool core_dumped() const;
};

// Whether `child` has ended: by which signal, 0 by itself. It stays a zombie.
std::optional<int> ended_by(pid_t child);

// Waits for `child` to end and takes its status.
ChildEnd wait_for(pid_t child);

// "SIGKILL", "SIGRTMIN+3".
std::string signal_name(int signal);

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
