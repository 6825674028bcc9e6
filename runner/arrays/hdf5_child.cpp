#include "arrays/hdf5_child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "arrays/hdf5_writer.hpp"
#include "arrays/open_files.hpp"
#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "mutex.hpp"
#include "program_root.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int most_idle_ms = 5000;
constexpr rlim_t most_cpu_seconds = 60;         // for one question
constexpr rlim_t most_cpu_seconds_copy = 7200;  // for one that copies a file
// A length from the socket is not trusted: a child that a file made crash may have written anything.
constexpr uint64_t largest_message = 1 << 30;

bool send_bytes(int socket, const char* from, uint64_t bytes) {
  while (bytes > 0) {
    // MSG_NOSIGNAL: a child that died is an error here and no SIGPIPE.
    const ssize_t sent = ::send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<uint64_t>(sent);
  }
  return true;
}

bool receive_bytes(int socket, char* to, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t received = ::recv(socket, to, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    to += received;
    bytes -= static_cast<uint64_t>(received);
  }
  return true;
}

// A message is its length (8 bytes) and its bytes: both ends are the same program on the same machine.
bool send_message(int socket, const std::string& message) {
  const uint64_t bytes = message.size();
  return send_bytes(socket, reinterpret_cast<const char*>(&bytes), sizeof bytes) &&
         send_bytes(socket, message.data(), bytes);
}

std::optional<std::string> receive_message(int socket) {
  uint64_t bytes = 0;
  if (!receive_bytes(socket, reinterpret_cast<char*>(&bytes), sizeof bytes) || bytes > largest_message)
    return std::nullopt;
  std::string message(bytes, '\0');
  if (!receive_bytes(socket, message.data(), bytes)) return std::nullopt;
  return message;
}

// SIGXCPU ends this process when the next question takes longer. The limit counts from the start of the process, so
// what was used already is added.
void limit_cpu_time(rlim_t most) {
  rusage used{};
  rlimit limit{};
  if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) return;
  const rlim_t end = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + most;
  // Only the soft limit, which the next question may raise again.
  limit.rlim_cur = std::min(end, limit.rlim_max);
  setrlimit(RLIMIT_CPU, &limit);
}

fs::path installed_program() {
  const fs::path root = program_root();
  return root.empty() ? root : root / "libexec" / "headroom-hdf5";
}

[[noreturn]] void throw_ended(const ChildEnd& end, const std::string& path) {
  const std::string file = in_quotes(path);
  if (end.signal() == SIGXCPU) {
    throw sdk::Error(HR_DATA_CORRUPT, file +
                                          " keeps libhdf5 busy forever; the file is damaged: copy it again or "
                                          "leave it out");
  }
  // Sent from outside, for instance by the kernel's OOM killer: the file is not to blame.
  if (end.signal() == SIGKILL || end.signal() == SIGTERM) {
    throw sdk::Error(HR_IO, "the process that looks into " + file + " was ended by " + signal_name(end.signal()) +
                                "; see whether memory ran out, and try again");
  }
  const std::string how = end.by_signal() ? signal_name(end.signal()) : "exit code " + std::to_string(end.exit_code());
  throw sdk::Error(HR_DATA_CORRUPT,
                   file + " makes libhdf5 crash (" + how + "); the file is damaged: copy it again or leave it out");
}

// The asking side. A child that ended because nothing was asked for a while is started again; one that dies of a
// question is not, and the question fails.
class Hdf5Child {
 public:
  void set_program(const fs::path& program) {
    const MutexLock lock(mutex_);
    stop();
    program_ = program;
  }

  // Nothing where no child can be started.
  std::optional<Hdf5Answer> ask(const Hdf5Question& question) {
    const MutexLock lock(mutex_);
    const std::string message = to_bytes(question);
    ChildEnd end;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!start()) return std::nullopt;
      if (send_message(socket_->get(), message)) {
        if (const auto answer = receive_message(socket_->get())) return answer_from(*answer);
      }
      end = stop();
      if (end.status != 0) break;  // 0: it had ended, nothing having been asked for a while
    }
    throw_ended(end, question.path);
  }

 private:
  bool start() REQUIRES(mutex_) {
    if (owner_ != getpid()) {  // after a fork the child is our parent's
      socket_.reset();
      owner_ = getpid();
    }
    if (socket_) return true;
    const fs::path program = program_.empty() ? installed_program() : program_;
    // SOCK_CLOEXEC: no other child inherits an end and keeps it open. `kept_file` passes theirs on.
    int ends[2];
    if (::access(program.c_str(), X_OK) != 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return false;
    // Closed here at the end of the scope: the child alone holds that end, so its death ends the stream.
    const Descriptor theirs(ends[1]);
    socket_.emplace(ends[0]);
    try {
      pid_ = start_child({program.string(), std::to_string(ends[1])}, {.kept_file = ends[1]});
      return true;
    } catch (const std::system_error&) {
      socket_.reset();
      return false;
    }
  }

  ChildEnd stop() REQUIRES(mutex_) {
    if (!socket_ || owner_ != getpid()) return {};
    socket_.reset();
    return wait_for(pid_);
  }

  Mutex mutex_;
  fs::path program_ GUARDED_BY(mutex_);
  std::optional<Descriptor> socket_ GUARDED_BY(mutex_);
  pid_t pid_ GUARDED_BY(mutex_) = -1, owner_ GUARDED_BY(mutex_) = -1;
};

Hdf5Child& child() {
  static auto* child = new Hdf5Child;  // it ends by itself when this process does
  return *child;
}

}  // namespace

Hdf5Answer ask_hdf5(Hdf5Question question) {
  std::error_code ignored;
  // The child's working folder is that of its start, or of an earlier question.
  if (!fs::path(question.path).is_absolute()) question.folder = fs::current_path(ignored).string();
  auto answer = child().ask(question);
  // Standard output is this process's own here, so that nothing may be printed there.
  if (!answer) answer = answer_here(question, /*may_print=*/false);
  if (answer->cannot_write) throw CannotWrite(answer->sentence);
  if (answer->status != HR_OK) throw sdk::Error(answer->status, answer->sentence);
  return std::move(*answer);
}

void set_hdf5_child(const std::filesystem::path& program) { child().set_program(program); }

void answer_hdf5_questions(int socket) {
  while (true) {
    pollfd asked{socket, POLLIN, 0};
    const int ready = ::poll(&asked, 1, most_idle_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    const auto message = receive_message(socket);
    if (!message) return;
    const Hdf5Question question = question_from(*message);
    limit_cpu_time(question.kind == Hdf5Question::Kind::copy ? most_cpu_seconds_copy : most_cpu_seconds);
    if (!question.folder.empty() && ::chdir(question.folder.c_str()) != 0) return;
    if (!send_message(socket, to_bytes(answer_here(question, /*may_print=*/true)))) return;
  }
}

}  // namespace headroom
