#include "memory/child_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/syscall.h>
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

// By its file where it has one: its number may be another process's by now.
bool send_kill(const WatchedProcess& process) {
  if (process.file >= 0) return syscall(SYS_pidfd_send_signal, process.file, SIGKILL, nullptr, 0) == 0;
  return kill(static_cast<pid_t>(process.pid), SIGKILL) == 0;
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
    helpers_.clear();
    ended_ = 0;
    set_bytes(0);
    return;
  }
  if (!tree_) tree_.emplace(getpid());
  tree_->look();
  for (const ProcessTree::Death& death : tree_->take_deaths()) {
    if (death.process.pid == ended_) ended_ = 0;
  }
  const std::vector<WatchedProcess> processes = tree_->processes();
  std::set<int64_t> helpers;
  // A helper's own children may come before it in the list.
  for (bool found = true; found;) {
    found = false;
    for (const WatchedProcess& process : processes) {
      const bool is_helper = helpers_.contains(process.pid) || helpers.contains(process.parent) ||
                             is_helper_process(static_cast<pid_t>(process.pid));
      found |= is_helper && helpers.insert(process.pid).second;
    }
  }
  helpers_ = std::move(helpers);
  int64_t bytes = 0;
  for (const WatchedProcess& process : processes) {
    if (helpers_.contains(process.pid)) continue;
    bytes += process.bytes;
    if (!largest_ || process.bytes > largest_->bytes) largest_ = process;
  }
  if (largest_) largest_bytes_.store(std::max(largest_bytes(), largest_->bytes), std::memory_order_relaxed);
  set_bytes(bytes);
}

std::optional<WatchedProcess> ChildWatch::end_largest() {
  if (!largest_ || ended_ != 0 || !send_kill(*largest_)) return std::nullopt;
  ended_ = largest_->pid;
  return largest_;
}

}  // namespace headroom
