// What the processes below this one hold: workers of a plugin, programs that the user's code starts. It is a part of U
// (held_bytes), under the run's limit, and on the ledger as `workers`. Helpers that Headroom itself starts
// (start_child) are small, come and go, and do not count.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>

#include "memory/process_tree.hpp"

namespace headroom {

// One a process: the monitor has it. What it found counts until it is destroyed.
class ChildWatch {
 public:
  ChildWatch() = default;
  ~ChildWatch();
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  // Measures them. A system call where there are none; otherwise see ProcessTree::look(). [one thread]
  void look();
  // Ends the one that held most at the last look (SIGKILL). Nothing: there is none, or the one that was ended before is
  // not gone yet. [one thread]
  std::optional<WatchedProcess> end_largest();
  // The most that one of them held at a look so far. [any]
  int64_t largest_bytes() const { return largest_bytes_.load(std::memory_order_relaxed); }

 private:
  static void set_bytes(int64_t bytes);

  std::optional<ProcessTree> tree_;        // once there are any
  std::set<int64_t> helpers_;              // of the tree, with what they started: it may outlive them
  std::optional<WatchedProcess> largest_;  // at the last look
  int64_t ended_ = 0;                      // by end_largest(), and still there; 0: none
  std::atomic<int64_t> largest_bytes_{0};
};

}  // namespace headroom
