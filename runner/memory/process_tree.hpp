// All processes below one: who they are, what they hold, and how they end. Linux reports an end to the parent only;
// this finds out for grandchildren too.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace headroom {

struct WatchedProcess {
  int64_t pid = 0, parent = 0;
  std::string name = {};     // as the kernel shortens it: 15 characters
  std::string command = {};  // its words, at most 200 characters
  int64_t bytes = 0;         // anonymous and shared memory, shared parts divided among those who share them (PSS)
  int64_t shared_bytes = 0;  // its part of shared memory among them
  bool by_rss = false;       // PSS may not be read: shared parts count in full
  int file = -1;             // a pidfd, readable once it has ended; -1: this kernel has none
};

// The processes below `root` that were there at a look(). Set PR_SET_CHILD_SUBREAPER in `root`, and none can leave the
// tree. [control]
class ProcessTree {
 public:
  explicit ProcessTree(int64_t root);
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // Finds new processes and measures all. Reading PSS makes the kernel walk through a process's pages, so it takes at
  // most a fiftieth of the time (a fifth where a new child shares pages). In between, PSS is the last one plus the
  // change of RSS. One that seems to be made with vfork() just now counts from the next look on.
  void look();

  // Removes the processes that have ended since the last call, and returns them as they were last seen. Call it also
  // between looks, when the `file` of one is readable.
  struct Death {
    WatchedProcess process;
    std::optional<int> status;  // as waitpid() gives it; nullopt: unknown
  };
  std::vector<Death> take_deaths();

  std::vector<WatchedProcess> processes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    WatchedProcess process;
    int64_t rss_bytes = 0;
    int64_t pss_bytes = 0, rss_at_pss = 0;
    Clock::time_point pss_read{};
    Clock::duration pss_cost{};
    bool has_new_child = false;  // it shares its memory now
    bool was_met = false;        // at a look before
  };
  void find_new();
  static void measure(Member& member);
  void add(WatchedProcess process);

  int64_t root_;
  std::map<int64_t, Member> members_;
  std::set<int64_t> outsiders_;  // looked at before, and not ours
};

// "python3", also of a zombie; "" when it is gone.
std::string process_name(int64_t pid);

// The status of a process that has ended, whoever its parent is: nullopt when this kernel does not tell. `pidfd` may be
// -1.
std::optional<int> status_of_dead(int64_t pid, int pidfd);

}  // namespace headroom
