// A process of a launch: how it is started, and what it says.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "memory/file_memory.hpp"

namespace headroom {

struct RankProcess {
  int rank;
  int number;     // of the processes that were started, from 0
  int group = 0;  // the first that it belongs to; -1: it was started again, and is not ready
  pid_t id = -1;
  std::optional<int> exit_code = {};  // once it has ended
  bool is_gone = false;               // the others go on without it
};

// Starts a run's processes on this machine, in a folder of their own. The first has our streams; what the others say is
// kept there. [control]
class RankStarter {
 public:
  // `signal_mask`: what they start with; it outlives this.
  RankStarter(std::filesystem::path program, int count, bool is_elastic, const sigset_t& signal_mask);

  const std::filesystem::path& folder() const { return folder_.path(); }  // also their Roster's
  // Returns its id. Error(bug).
  pid_t start(std::vector<std::string> words, const RankProcess& process) const;
  // To the process and to all that it started.
  static void signal_all(const RankProcess& process, int signal) { kill(-process.id, signal); }

  // Writes what it said, without its first `from` bytes, to stderr. Returns how many bytes that were.
  int64_t copy_words(const RankProcess& process, int64_t from) const;
  // The same, line by line with its rank. Nothing of the first process, which said it itself.
  void show_words(const RankProcess& process) const;
  // Writes the result that it told to stdout. REQUIRES that it is not the first process.
  void copy_result(const RankProcess& process) const;

 private:
  std::filesystem::path words_of(const RankProcess& process) const;
  std::filesystem::path results_of(const RankProcess& process) const;

  const ScratchFolder folder_;
  const std::filesystem::path program_;
  const int count_;  // of ranks
  const bool is_elastic_;
  const sigset_t& signal_mask_;
};

}  // namespace headroom
