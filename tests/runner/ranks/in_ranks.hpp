// Ranks of a group for tests: real processes of this machine.
#pragma once

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "error.hpp"
#include "ranks/group.hpp"

namespace headroom {

// What a rank's process ends with where all its expectations held.
inline constexpr int as_expected = 42;

// Exit codes of `count` processes that run `body`, which returns what they end with. LibTorch has started no thread
// here yet, so forks are whole. Nobody hangs: a watchdog ends each.
inline std::vector<int> in_ranks(int count, const std::function<int(RankGroup& group)>& body,
                                 unsigned watchdog_seconds = 240) {
  std::string folder = (std::filesystem::temp_directory_path() / "headroom-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  std::vector<pid_t> processes;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      alarm(watchdog_seconds);
      std::signal(SIGPIPE, SIG_IGN);  // as Headroom's programs do
      try {
        Ranks ranks;
        ranks.rank = ranks.local_rank = rank;
        ranks.count = ranks.local_count = count;
        ranks.store_file = folder + "/store";
        RankGroup group(ranks);
        const int ended_with = body(group);
        group.leave();
        _exit(ended_with);
      } catch (const Error& problem) {
        std::fprintf(stderr, "%d: %s\n", rank, problem.what());
        _exit(static_cast<int>(problem.exit_code()));
      }
    }
    processes.push_back(process);
  }
  std::vector<int> ended;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    ended.push_back(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
  std::filesystem::remove_all(folder);
  return ended;
}

}  // namespace headroom
