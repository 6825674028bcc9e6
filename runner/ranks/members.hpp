// Who is left of a run's processes, for a run that goes on where one is killed (train.elastic). Their launcher is their
// parent and sees every death, so it alone decides: each death makes another group, and so does each rank that was
// started in place of a killed one and is ready. All ranks follow the same sequence of groups. Files in the launcher's
// folder: `members`, replaced as a whole, and marks of ranks and groups.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace headroom {

// Ranks have the numbers that they were launched with.
struct Members {
  int group = 0;                // as launched; each change makes the next one
  std::vector<int> ranks = {};  // in the order of their places; one that comes back takes the last
  bool ended = false;           // the run goes on no more
};

// All [any]. Files that cannot be written are as if they had not been: those who wait for them end in time.
class Roster {
 public:
  explicit Roster(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Of the launcher.
  void tell(const Members& members) const;
  std::optional<pid_t> process_of(int rank) const;  // its trainer; nullopt: it has not signed in
  void sign_out(int rank) const;                    // it is gone, and another process has its number
  std::filesystem::path run() const;                // its folder; empty: no rank has told it yet
  std::optional<int64_t> step_of(int group) const;  // from which that group goes on; nullopt: it does not yet

  // Of a rank.
  void sign_in(int rank) const;
  void tell_run(const std::filesystem::path& folder) const;
  Members read() const;  // nothing was told: group 0, without ranks
  void come_to(int group, int rank) const;
  bool have_all_come(const Members& members) const;
  std::filesystem::path store_of(int group) const;  // where its ranks find each other
  void go_on(int group, int64_t step) const;

 private:
  std::filesystem::path folder_;
};

// Waits until there is a group after `group`, and all of its members have come to it, of which `rank` is one. nullopt:
// the run does not go on, or nobody has said so in time; or `stopped` while others are on their way.
std::optional<Members> next_group(const Roster& roster, int group, int rank, const std::function<bool()>& stopped);

// For a rank that comes back: waits until it is a member, and returns the group before that. nullopt: the run does not
// go on, or `stopped`.
std::optional<int> group_before_return(const Roster& roster, int rank, const std::function<bool()>& stopped);

// Which rank writes a run's files, by its launched number: another than 0 where that one was lost.
void note_first_rank(const std::filesystem::path& run, int rank);
void forget_first_rank(const std::filesystem::path& run);  // of an earlier launch
int first_rank_of(const std::filesystem::path& run);

}  // namespace headroom
