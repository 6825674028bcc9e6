#include "memory/child_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "memory/child_process.hpp"
#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"

namespace headroom {

namespace {

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

}  // namespace

ChildWatch::~ChildWatch() { set_bytes(0); }

void ChildWatch::set_bytes(int64_t bytes) {
  account(Owner::workers, bytes - children_bytes());
  set_children_bytes(bytes);
}

void ChildWatch::look() {
  largest_.reset();
  if (!has_children()) {
    tree_.reset();
    set_bytes(0);
    return;
  }
  if (!tree_) tree_.emplace(getpid());
  tree_->look();
  tree_->take_deaths();
  const std::vector<WatchedProcess> processes = tree_->processes();
  std::set<int64_t> helpers;
  // A helper's own children may come before it in the list.
  for (bool found = true; found;) {
    found = false;
    for (const WatchedProcess& process : processes) {
      const bool is_helper = is_helper_process(static_cast<pid_t>(process.pid)) || helpers.contains(process.parent);
      found |= is_helper && helpers.insert(process.pid).second;
    }
  }
  int64_t bytes = 0;
  for (const WatchedProcess& process : processes) {
    if (helpers.contains(process.pid)) continue;
    bytes += process.bytes;
    if (!largest_ || process.bytes > largest_->bytes) largest_ = process;
  }
  if (largest_) largest_bytes_.store(std::max(largest_bytes(), largest_->bytes), std::memory_order_relaxed);
  set_bytes(bytes);
}

std::optional<WatchedProcess> ChildWatch::end_largest() {
  if (!largest_ || kill(static_cast<pid_t>(largest_->pid), SIGKILL) != 0) return std::nullopt;
  return std::exchange(largest_, std::nullopt);
}

}  // namespace headroom
