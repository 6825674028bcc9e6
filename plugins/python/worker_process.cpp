#include "worker_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "python_sources.hpp"

extern char** environ;

namespace headroom::python {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSocket = 3, kMemory = 4;  // the worker's descriptors, as dataset_worker.py has them
constexpr int kAboveThose = 10;
constexpr int kLookEvery_ms = 100;                   // while a worker is silent
constexpr std::chrono::milliseconds kTimeToGo(500);  // of a worker that was let go
constexpr std::string_view kOneThread[] = {"OMP_NUM_THREADS=", "MKL_NUM_THREADS=", "OPENBLAS_NUM_THREADS="};

[[noreturn]] void refuse(const std::string& what, int code) {
  throw sdk::Error(HR_IO, "a worker process of the dataset cannot be started: " + what + ": " + std::strerror(code));
}

// Above the numbers that they get in the child, so that one does not take the place of another.
OwnedFile moved_up(int number, const char* what) {
  const OwnedFile below(number);
  if (number < 0) refuse(what, errno);
  OwnedFile above(fcntl(number, F_DUPFD_CLOEXEC, kAboveThose));
  if (above.get() < 0) refuse(what, errno);
  return above;
}

// The program text as a file: a worker reads it from its standard input.
OwnedFile script() {
  OwnedFile file = moved_up(memfd_create("headroom-worker", MFD_CLOEXEC), "its script");
  for (std::string_view rest = kWorkerSource; !rest.empty();) {
    const ssize_t written = write(file.get(), rest.data(), rest.size());
    if (written < 0) refuse("its script", errno);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Ours; one thread for each worker, since there are many; and sets in the same order in all of them.
std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  const auto add = [&](std::string_view name, const char* value) {
    if (std::ranges::none_of(entries, [&](const std::string& entry) { return entry.starts_with(name); }))
      entries.push_back(std::string(name) + value);
  };
  for (const std::string_view name : kOneThread) add(name, "1");
  add("PYTHONHASHSEED=", "0");
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct ChildFiles {
  int script, socket, memory;
};

pid_t spawn(const std::filesystem::path& program, std::vector<std::string> words, const ChildFiles& files) {
  std::vector<std::string> entries = environment();
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  // Threads of the host block signals, and the host ignores some: a child would inherit both.
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, files.script, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, files.socket, kSocket);
  posix_spawn_file_actions_adddup2(&actions, files.memory, kMemory);
  posix_spawn_file_actions_addclosefrom_np(&actions, kMemory + 1);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, program.c_str(), &actions, &attributes, pointers_to(words).data(),
                                  pointers_to(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) refuse(program.string(), failed);
  return child;
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  const std::string signal = name != nullptr ? std::string("SIG") + name : std::to_string(WTERMSIG(status));
  if (WTERMSIG(status) == SIGKILL) return "was ended by SIGKILL (for want of memory, or from outside)";
  return "was ended by " + signal;
}

// nullopt: it is no child of this process, or somebody else has waited for it.
std::optional<bool> ended(pid_t child) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return std::nullopt;
  return info.si_pid == child;
}

std::vector<std::string> parts_of(const std::string& message) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= message.size();) {
    const size_t end = std::min(message.find('\0', begin), message.size());
    parts.push_back(message.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

void OwnedFile::reset() {
  if (number_ >= 0) close(number_);
  number_ = -1;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string message;
  for (const std::string& part : parts) message += (&part == &parts.front() ? "" : std::string(1, '\0')) + part;
  return message;
}

ChildStarter::~ChildStarter() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  wanted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

pid_t ChildStarter::run(std::function<pid_t()> start) {
  std::packaged_task<pid_t()> task(std::move(start));
  std::future<pid_t> child = task.get_future();
  {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    tasks_.push_back(std::move(task));
  }
  wanted_.notify_one();
  return child.get();
}

void ChildStarter::serve() {
  sigset_t all;  // signals of the process are for its main thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::packaged_task<pid_t()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

WorkerProcess::WorkerProcess(ChildStarter& starter, const std::filesystem::path& program,
                             const std::filesystem::path& file) {
  std::array<int, 2> ends{-1, -1};
  // A packet is one message, and its end comes when the other side is gone.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) refuse("its socket", errno);
  socket_ = OwnedFile(ends[0]);
  const OwnedFile theirs = moved_up(ends[1], "its socket"), text = script();
  memory_file_ = moved_up(memfd_create("headroom-samples", MFD_CLOEXEC), "its memory");
  // The file is there for those who look at the list of processes.
  std::vector<std::string> words = {program.string(), "-u", "-", file.filename().string(), std::to_string(getpid())};
  const ChildFiles files{text.get(), theirs.get(), memory_file_.get()};
  pid_ = starter.run([&] { return spawn(program, std::move(words), files); });
}

WorkerProcess::~WorkerProcess() {
  socket_.reset();
  if (pid_ >= 0) reap(busy_);
}

void WorkerProcess::make_memory(size_t bytes) {
  if (ftruncate(memory_file_.get(), static_cast<off_t>(bytes)) != 0) refuse("its memory", errno);
}

void WorkerProcess::read_memory(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(memory_file_.get(), to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw sdk::Error(HR_IO, "the memory of a worker process of the dataset cannot be read: " +
                                  std::string(got < 0 ? std::strerror(errno) : "it was made shorter"));
    }
    offset += static_cast<uint64_t>(got);
    to = to.subspan(static_cast<size_t>(got));
  }
}

std::vector<std::string> WorkerProcess::ask(const std::string& message, double most_s, const sdk::Host& host) {
  busy_ = true;
  // MSG_NOSIGNAL: a worker that died is an error here and no SIGPIPE.
  if (send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EMSGSIZE) sdk::invalid("data.options.args are too long for one message to a worker process");
    throw_ended();
  }
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(most_s));
  pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  while (poll(&answer, 1, kLookEvery_ms) <= 0) {
    if (has_ended()) throw_ended();  // a child of its own may keep the socket open
    if (Clock::now() > end) {
      reap(/*kill_it=*/true);
      const std::string seconds = std::to_string(most_s);
      throw WorkerEnded{"gave nothing within " + seconds.substr(0, seconds.find('.') + 2) + " s and was ended"};
    }
    host.throw_if_cancelled();
  }
  std::vector<std::string> parts = parts_of(receive());
  busy_ = false;
  if (parts.front() == "ok") {
    parts.erase(parts.begin());
    return parts;
  }
  parts.resize(3);
  throw WorkerRefused{parts[0], parts[1], parts[2]};
}

std::string WorkerProcess::receive() {
  std::string message(4096, '\0');
  // The length of the whole packet, however much of it fits.
  const ssize_t bytes = recv(socket_.get(), message.data(), message.size(), MSG_PEEK | MSG_TRUNC);
  if (bytes <= 0) throw_ended();
  message.resize(static_cast<size_t>(bytes));
  if (recv(socket_.get(), message.data(), message.size(), 0) != bytes) throw_ended();
  return message;
}

bool WorkerProcess::has_ended() { return pid_ < 0 || ended(pid_).value_or(true); }

void WorkerProcess::throw_ended() { throw reap(/*kill_it=*/false); }

// Waits for its end and says how that was. One that does not go by itself is killed.
WorkerEnded WorkerProcess::reap(bool kill_it) {
  if (pid_ < 0) return {"had ended"};
  for (const auto end = Clock::now() + kTimeToGo; !kill_it && !has_ended() && Clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::optional<bool> by_itself = ended(pid_);
  // The whole group: it may have started others. The child is not reaped yet, so the number is still its own.
  if (by_itself) kill(-pid_, SIGKILL);
  int status = 0;
  pid_t gone = 0;
  while ((gone = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (gone < 0) return {"ended"};
  if (!by_itself.value_or(true)) return {"closed its socket and was ended"};
  return {how_it_ended(status), WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL};
}

}  // namespace headroom::python
