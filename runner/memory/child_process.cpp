#include "memory/child_process.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <spawn.h>
#include <string_view>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "error.hpp"
#include "memory/data_limit.hpp"
#include "memory/process_tree.hpp"
#include "mutex.hpp"

extern char** environ;

namespace headroom {

namespace {

Mutex helpers_mutex;
std::set<pid_t> helpers GUARDED_BY(helpers_mutex);

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// `settings`, and of ours what they leave.
std::vector<std::string> environment_with(std::vector<std::string> settings) {
  // Only the given settings replace ours; what is appended behind them is ours.
  const size_t own = settings.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view ours(*entry), name = ours.substr(0, ours.find('=') + 1);
    const bool is_set = std::any_of(settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(own),
                                    [&](const std::string& setting) { return setting.starts_with(name); });
    if (!is_set) settings.emplace_back(ours);
  }
  return settings;
}

}  // namespace

pid_t start_child(std::vector<std::string> words, const ChildOptions& options) {
  std::vector<std::string> environment = environment_with(options.environment);
  sigset_t none, ignored_by_us;
  sigemptyset(&none);
  sigemptyset(&ignored_by_us);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&ignored_by_us, signal);  // which a child would inherit
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Blocked and ignored signals would stay so in the new program.
  posix_spawnattr_setsigmask(&attributes, options.signal_mask != nullptr ? options.signal_mask : &none);
  posix_spawnattr_setsigdefault(&attributes, &ignored_by_us);
  const int group = options.apart ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.stdin_file >= 0) posix_spawn_file_actions_adddup2(&actions, options.stdin_file, STDIN_FILENO);
  if (options.stdout_file >= 0) posix_spawn_file_actions_adddup2(&actions, options.stdout_file, STDOUT_FILENO);
  if (options.stderr_file >= 0) posix_spawn_file_actions_adddup2(&actions, options.stderr_file, STDERR_FILENO);
  // Onto its own number: POSIX.1-2024 then clears FD_CLOEXEC.
  if (options.kept_file >= 0) posix_spawn_file_actions_adddup2(&actions, options.kept_file, options.kept_file);
  if (options.apart) posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  pid_t child = -1;
  const auto spawn = options.search_path ? posix_spawnp : posix_spawn;
  auto argument_list = pointers(words), environment_list = pointers(environment);
  int failed = 0;
  {
    // A child inherits the limits that its parent has at the moment of the spawn.
    const rlim_t ours = soft_data_limit(), told = static_cast<rlim_t>(options.data_limit_bytes);
    const ScopedDataLimit inherited(told > 0 ? std::min(ours, told) : ours);
    failed = spawn(&child, words.front().c_str(), &actions, &attributes, argument_list.data(), environment_list.data());
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  // posix_spawn() returns its error, also that of the exec, instead of setting errno.
  if (failed != 0) throw std::system_error(failed, std::generic_category(), words.front());
  const MutexLock lock(helpers_mutex);
  helpers.insert(child);
  return child;
}

bool is_helper_process(pid_t child) {
  const MutexLock lock(helpers_mutex);
  return helpers.contains(child);
}

bool ChildEnd::by_signal() const { return WIFSIGNALED(status); }
int ChildEnd::signal() const { return by_signal() ? WTERMSIG(status) : 0; }
int ChildEnd::exit_code() const { return by_signal() ? 128 + signal() : WEXITSTATUS(status); }
bool ChildEnd::core_dumped() const { return by_signal() && WCOREDUMP(status); }

ChildEnd wait_for(pid_t child) {
  ChildEnd end;
  rusage usage{};
  while (wait4(child, &end.status, 0, &usage) < 0 && errno == EINTR) {
  }
  // In KiB: getrusage(2).
  end.peak_resident_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  const MutexLock lock(helpers_mutex);
  helpers.erase(child);
  return end;
}

std::optional<int> ended_by(pid_t child) {
  siginfo_t info{};
  // WNOWAIT leaves the zombie for wait_for(). While the child runs, si_pid stays 0.
  if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != child)
    return std::nullopt;
  return info.si_code == CLD_EXITED ? 0 : info.si_status;
}

std::string signal_name(int signal) {
  if (signal >= SIGRTMIN) return "SIGRTMIN+" + std::to_string(signal - SIGRTMIN);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

namespace {

// The terminal's driver sends these three in the kernel's name.
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
    // The terminal has sent its signal to the child too, but not what a hangup is passed on as.
    if (!from_terminal || passed_on != received->signal) kill(child, passed_on);
  }
}

}  // namespace headroom
