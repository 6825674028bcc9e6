#include "ranks/launch.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "memory/file_memory.hpp"
#include "memory/supervised.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto grace = std::chrono::seconds(10);

Descriptor open_file(const std::filesystem::path& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) throw Error(Exit::cannot_write, "ranks", "cannot open " + path.string());
  return file;
}

struct RankProcess {
  pid_t id = -1;
  std::optional<int> exit_code;  // once it has ended
};

bool is_a_stop(int exit_code) {
  return exit_code == static_cast<int>(Exit::resumable) || exit_code == static_cast<int>(Exit::interrupted);
}
bool is_a_failure(int exit_code) { return exit_code != 0 && !is_a_stop(exit_code); }
bool was_killed(int exit_code) { return exit_code == static_cast<int>(Exit::killed); }

class Launch {
 public:
  Launch(const std::filesystem::path& program, const std::vector<std::string>& words, int count)
      : signals_({SIGTERM, SIGINT, SIGUSR1, SIGHUP}), folder_("ranks") {
    for (int rank = 0; rank < count; ++rank) processes_.push_back({start(program, words, rank, count), {}});
  }
  ~Launch() {
    for (const RankProcess& process : processes_) {
      if (!process.exit_code) end(process, SIGKILL);
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  int wait() {
    while (std::ranges::any_of(processes_, [](const RankProcess& process) { return !process.exit_code; })) {
      pollfd ready{.fd = signals_.file(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, 200);
      pass_signals_on();
      for (RankProcess& process : processes_) look_at(process);
      if (failed_ && Clock::now() - *failed_ > grace) {
        for (const RankProcess& process : processes_) {
          if (!process.exit_code) end(process, SIGKILL);
        }
      }
    }
    return conclude();
  }

 private:
  std::filesystem::path words_of(int rank) const { return folder_.path() / ("rank-" + std::to_string(rank)); }

  pid_t start(const std::filesystem::path& program, std::vector<std::string> words, int rank, int count) {
    words.insert(words.begin(), program.string());
    ChildOptions options{
        .environment = {rank_variable + ("=" + std::to_string(rank)), ranks_variable + ("=" + std::to_string(count)),
                        std::string(ranks_store_variable) + "=" + (folder_.path() / "store").string(),
                        // So that it ends with us.
                        sweep_variable + std::to_string(getpid())},
        .signal_mask = &signals_.mask_before(),
        // In a group of its own: it can be ended with its trainer.
        .apart = true};
    try {
      if (rank == 0) return start_child(std::move(words), options);
      const Descriptor nowhere = open_file("/dev/null", O_RDWR),
                       said = open_file(words_of(rank), O_WRONLY | O_CREAT | O_APPEND);
      options.stdin_file = options.stdout_file = nowhere.get();
      options.stderr_file = said.get();
      return start_child(std::move(words), options);
    } catch (const std::system_error& problem) {
      throw Error(Exit::bug, "ranks", "cannot start " + program.string() + ": " + problem.code().message());
    }
  }

  static void end(const RankProcess& process, int signal) { kill(-process.id, signal); }

  // To the front of each rank, which passes it on to its trainer.
  void pass_signals_on() {
    bool from_terminal = false;
    while (const auto received = signals_.take(from_terminal)) {
      for (const RankProcess& process : processes_) {
        if (!process.exit_code) kill(process.id, received->signal == SIGHUP ? SIGTERM : received->signal);
      }
    }
  }

  void look_at(RankProcess& process) {
    if (process.exit_code || !ended_by(process.id)) return;
    process.exit_code = wait_for(process.id).exit_code();
    if (is_a_failure(*process.exit_code) && !failed_) failed_ = Clock::now();
  }

  int conclude() const {
    const int first = *processes_.front().exit_code;
    int failed = 0;
    bool killed = false;
    for (size_t rank = processes_.size(); rank-- > 0;) {
      const int ended = *processes_[rank].exit_code;
      if (!is_a_failure(ended)) continue;
      // Perhaps by us, because it went on without the one that failed.
      if (was_killed(ended)) {
        killed = true;
      } else {
        failed = ended;
      }
      // Otherwise rank 0 has said the same.
      if (rank > 0 && ended != first) show(static_cast<int>(rank));
    }
    return failed != 0 ? failed : killed ? static_cast<int>(Exit::resumable) : first;
  }

  void show(int rank) const {
    std::ifstream said(words_of(rank));
    for (std::string line; std::getline(said, line);) std::fprintf(stderr, "[rank %d] %s\n", rank, line.c_str());
  }

  SignalRelay signals_;
  const ScratchFolder folder_;
  std::vector<RankProcess> processes_;
  std::optional<Clock::time_point> failed_;  // when the first of them did
};

}  // namespace

int launch_ranks(const std::filesystem::path& program, const std::vector<std::string>& words, int count) {
  return Launch(program, words, count).wait();
}

}  // namespace headroom
