// A child process of data.source = "python", which runs dataset_worker.py: how it starts, is asked, and ends.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <sys/types.h>
#include <thread>
#include <utility>
#include <vector>

#include "headroom/sdk/host.hpp"

namespace headroom::python {

// A descriptor that closes itself.
class OwnedFile {
 public:
  OwnedFile() = default;
  explicit OwnedFile(int number) : number_(number) {}
  OwnedFile(OwnedFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedFile() { reset(); }
  void reset();
  int get() const { return number_; }

 private:
  int number_ = -1;
};

// A thread that starts child processes. Linux ends a child that asked for it (PR_SET_PDEATHSIG) together with the
// thread that started it: readers of the host come and go, this thread stays.
class ChildStarter {
 public:
  ChildStarter() = default;
  ~ChildStarter();
  ChildStarter(const ChildStarter&) = delete;
  ChildStarter& operator=(const ChildStarter&) = delete;

  // Runs `start` there and returns what it returns. [any]
  pid_t run(std::function<pid_t()> start);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::packaged_task<pid_t()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

// Thrown where a worker has ended or was ended because it gave no answer: "was ended by SIGKILL", "exited with code 3".
struct WorkerEnded {
  std::string how;
  bool killed = false;  // by others, as the kernel and the host do for want of memory
};

// The worker's answer was no: its kind ("input", "code", "memory"), a sentence, a traceback.
struct WorkerRefused {
  std::string kind, sentence, traceback;
};

// One worker. It is in a process group of its own, which the terminal's signals do not reach; has no descriptors of the
// host but its own; and writes what Python prints to the host's stderr. Used by one thread at a time.
class WorkerProcess {
 public:
  // `program`: Python. `starter` outlives it. Error where it cannot be started.
  WorkerProcess(ChildStarter& starter, const std::filesystem::path& program, const std::filesystem::path& file);
  // Ends it, at once where it is busy and otherwise by letting it go, and what it has started.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // The parts behind "ok" of its answer to `message`. Throws WorkerRefused; WorkerEnded, also after `most_s` seconds
  // without an answer, when it is killed; Error(cancelled). After the last two it answers no more.
  std::vector<std::string> ask(const std::string& message, double most_s, const sdk::Host& host);
  bool has_ended();  // since the last answer

  // Makes the memory that it writes samples to. Once.
  void make_memory(size_t bytes);
  // The bytes at `offset` of it. It is not mapped here, where its pages would count a second time. Error(io).
  void read_memory(uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string receive();
  [[noreturn]] void throw_ended();
  WorkerEnded reap(bool kill_it);

  pid_t pid_ = -1;  // -1: reaped
  bool busy_ = false;
  OwnedFile socket_, memory_file_;
};

// Parts of a message: divided by NUL.
std::string joined(const std::vector<std::string>& parts);

}  // namespace headroom::python
